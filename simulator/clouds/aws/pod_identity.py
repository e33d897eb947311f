"""EKS Pod Identity: which service account gets which role."""

from collections.abc import Mapping
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.aws.eks.belonging import IDENTITY, no_cluster, role_of
from holdfast.simulator.clouds.aws.names import ACCOUNT, PARTITION, place
from holdfast.simulator.clouds.catalogue import Making, Rules

# What tells associations apart: a service account has one role.
_WHOSE: Final = ("clusterName", "namespace", "serviceAccount")


def _identify(making: Making) -> str:
    return f"a-{making.digest[:17]}"


def _arn(making: Making) -> str:
    where = f"{place(making)}:{ACCOUNT}:podidentityassociation/{making.inputs.get('clusterName')}"
    return f"arn:{PARTITION}:eks:{where}/{_identify(making)}"


def _no_role(making: Making) -> str | None:
    if role_of(making.inputs.get("roleArn"), making.inventory) is not None:
        return None
    return "InvalidParameterException: Role provided in the request does not exist."


def _exists(making: Making) -> str | None:
    def whose(inputs: Json) -> list[object]:
        return [inputs.get(name) for name in _WHOSE]

    for one in making.inventory.of_type(IDENTITY):
        if whose(one.inputs) == whose(making.inputs):
            return f"ResourceInUseException: Association already exists: {one.id}"
    return None


RESOURCES: Mapping[str, Rules] = {
    IDENTITY: Rules(
        name_property="",
        identify=_identify,
        immutable=frozenset(_WHOSE),
        computed={"associationArn": _arn, "associationId": _identify},
        refuse_create=(no_cluster, _exists, _no_role),
        refuse_update=(_no_role,),
    ),
}
