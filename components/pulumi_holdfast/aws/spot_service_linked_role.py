"""The service-linked role that an AWS account needs to start spot instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi import ComponentResource, ErrorHook, ErrorHookArgs, ResourceHookBinding, ResourceOptions
from pulumi_aws.iam import ServiceLinkedRole

#: The service that the role is linked to; it is part of the role's path.
SERVICE: Final = "spot.amazonaws.com"
PATH: Final = f"/aws-service-role/{SERVICE}/"

#: Never changed: the role may have a description and tags from other users, and an import is followed by an
#: update if these differ, which a caller with read-only permissions cannot do. `tagsAll` contains the
#: provider's default tags, which would differ as well.
_LEFT_ALONE: Final = ("description", "tags", "tagsAll", "customSuffix")

_TAKEN: Final = "has been taken in this account"
_RUN_AGAIN: Final = (
    "AWSServiceRoleForEC2Spot did not exist when this run looked it up, and was created by another user since. "
    "Run `pulumi up` again: it finds the role and imports it."
)


@dataclass(frozen=True, kw_only=True)
class SpotServiceLinkedRoleArgs:
    """`existing_arn` is the ARN of the account's `AWSServiceRoleForEC2Spot`, None if it does not exist."""

    existing_arn: str | None


class SpotServiceLinkedRole(ComponentResource):
    """The account's service-linked role for EC2 Spot (`holdfast:index:SpotServiceLinkedRole`).

    Creates or imports `AWSServiceRoleForEC2Spot`; it is never deleted. Without it EC2 rejects spot instances
    with `AuthFailure.ServiceLinkedRoleCreationNotPermitted`, so spot pools depend on it. Other stacks of the
    account use it too, so it is never changed and stays when the stack is destroyed.
    """

    def __init__(
        self, name: str, args: SpotServiceLinkedRoleArgs, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("holdfast:index:SpotServiceLinkedRole", name, None, opts)
        role = ServiceLinkedRole(
            f"{name}-role",
            aws_service_name=SERVICE,
            opts=ResourceOptions(
                parent=self,
                # Once the role is in the state, the import of the same ARN has no effect, so it can always be
                # set.
                import_=args.existing_arn,
                ignore_changes=[*_LEFT_ALONE],
                retain_on_delete=True,
                hooks=ResourceHookBinding(on_error=[ErrorHook(f"{name}-taken", _explain)]),
            ),
        )
        self.arn = role.arn
        self.register_outputs({"arn": self.arn})


def _explain(failure: ErrorHookArgs) -> bool:
    """Explain a creation that failed because the role was created by another run in the meantime.

    AWS's message asks for a suffix, which this role cannot have. There is no retry: the planned create would
    fail each time.
    """
    if any(_TAKEN in error for error in failure.errors):
        pulumi.log.error(_RUN_AGAIN)
    return False
