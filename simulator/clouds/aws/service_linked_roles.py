"""Service-linked roles: one for each service and account, named by AWS."""

from collections.abc import Mapping
from typing import Final

from holdfast.simulator.clouds.aws.names import ACCOUNT, PARTITION
from holdfast.simulator.clouds.aws.permissions import removing, writing
from holdfast.simulator.clouds.catalogue import Making, Rules

TYPE: Final = "aws:iam/serviceLinkedRole:ServiceLinkedRole"
_SPOT: Final = "spot.amazonaws.com"
# Their names are AWS's own and follow no rule, so this one alone is known.
_ROLES: Final[Mapping[str, str]] = {_SPOT: "AWSServiceRoleForEC2Spot"}


def role_arn(making: Making) -> str:
    """Return a service-linked role's ARN, which is its id too."""
    return f"arn:{PARTITION}:iam::{ACCOUNT}:role{_path(making)}{_name(making)}"


def _service(making: Making) -> str:
    return str(making.inputs.get("awsServiceName"))


def _path(making: Making) -> str:
    return f"/aws-service-role/{_service(making)}/"


def _name(making: Making) -> str:
    return _ROLES.get(_service(making), "")


def _unknown_service(making: Making) -> str | None:
    if _service(making) in _ROLES:
        return None
    return f"the service-linked role of {_service(making)} is not rehearsed; these are: {', '.join(_ROLES)}"


def _suffixed(making: Making) -> str | None:
    if making.inputs.get("customSuffix"):
        return f"InvalidInput: Custom suffix is not allowed for {_service(making)}"
    return None


RULES: Final = Rules(
    identify=role_arn,
    immutable=frozenset({"awsServiceName", "customSuffix"}),
    computed={"arn": role_arn, "name": _name, "path": _path},
    taken=(
        f"InvalidInput: Service role name {_ROLES[_SPOT]} has been taken in this account, "
        "please try a different suffix."
    ),
    refuse_create=(_unknown_service, _suffixed, writing("iam:CreateServiceLinkedRole", role_arn)),
    refuse_update=(writing("iam:UpdateRole", role_arn),),
    refuse_delete=(removing("iam:DeleteServiceLinkedRole"),),
)
