"""The component that sees to it that an account may start spot machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pulumi
from pulumi import ComponentResource, ErrorHook, ResourceHookBinding, ResourceOptions
from pulumi_aws.iam import ServiceLinkedRole

if TYPE_CHECKING:
    from pulumi import ErrorHookArgs

#: The service that the role is linked to; where to look for the role is under its path.
SERVICE: Final = "spot.amazonaws.com"
PATH: Final = f"/aws-service-role/{SERVICE}/"

#: What a program may neither set nor take away: an account's role may bear a description and tags of somebody
#: else's, and an import is followed by an update wherever these differ, which a caller who only reads cannot make.
#: `tagsAll` holds the provider's default tags, which would differ just so.
_LEFT_ALONE: Final = ("description", "tags", "tagsAll", "customSuffix")

_TAKEN: Final = "has been taken in this account"
_RUN_AGAIN: Final = (
    "AWSServiceRoleForEC2Spot was not there when this run looked for it, and somebody else made it since. "
    "An account has one such role: run again, and the next run finds it and adopts it."
)


@dataclass(frozen=True, kw_only=True)
class SpotServiceLinkedRoleArgs:
    """`existing_arn` is the ARN of the account's `AWSServiceRoleForEC2Spot`, None where it has none yet."""

    existing_arn: str | None


class SpotServiceLinkedRole(ComponentResource):
    """The account's service-linked role for EC2 Spot: made where there is none, adopted where there is, never deleted.

    Creates, or imports, `AWSServiceRoleForEC2Spot`. Without it EC2 refuses spot machines with
    `AuthFailure.ServiceLinkedRoleCreationNotPermitted`, so spot pools depend on it. It belongs to the account: other
    stacks and people use it, so it stays when the stack goes, and nothing of it is changed.
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
                # Once the role is in the stack's state, the same ARN means nothing new: it may be given for ever.
                import_=args.existing_arn,
                ignore_changes=[*_LEFT_ALONE],
                retain_on_delete=True,
                hooks=ResourceHookBinding(on_error=[ErrorHook(f"{name}-taken", _explain)]),
            ),
        )
        self.arn = role.arn
        self.register_outputs({"arn": self.arn})


def _explain(failure: ErrorHookArgs) -> bool:
    """Say what a creation lost to another means: AWS's words ask for a suffix, which Spot's role may not have.

    No retry: what the engine has planned is a create, and it would be refused as often as it is tried.
    """
    if any(_TAKEN in error for error in failure.errors):
        pulumi.log.error(_RUN_AGAIN)
    return False
