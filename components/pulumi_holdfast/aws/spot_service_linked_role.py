"""The service-linked role that an AWS account needs to start spot instances."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

import pulumi
from pulumi import ErrorHook, ErrorHookArgs, ResourceHookBinding, ResourceOptions
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


#: The roles of a program by account; the program is the stack at the root of its resources.
_MADE: Final = WeakKeyDictionary[pulumi.Resource, dict[str, ServiceLinkedRole]]()


def spot_service_linked_role(
    name: str, *, account: str, existing_arn: str | None, opts: ResourceOptions | None = None
) -> ServiceLinkedRole:
    """Create or import the account's service-linked role for EC2 Spot, `AWSServiceRoleForEC2Spot`; it is never deleted.

    `existing_arn` is its ARN, None if it does not exist. The clusters of a program in one account share the first one's: AWS refuses
    a second. Without it EC2 rejects spot instances with `AuthFailure.ServiceLinkedRoleCreationNotPermitted`, so spot pools depend
    on it. Other stacks of the account use it too, so it is never changed and stays when the stack is destroyed.
    """
    stack = pulumi.runtime.get_root_resource()
    made = {} if stack is None else _MADE.setdefault(stack, {})
    if account not in made:
        made[account] = ServiceLinkedRole(
            name,
            aws_service_name=SERVICE,
            opts=ResourceOptions.merge(
                opts,
                ResourceOptions(
                    # Once the role is in the state, the import of the same ARN has no effect, so it can always be
                    # set.
                    import_=existing_arn,
                    ignore_changes=[*_LEFT_ALONE],
                    retain_on_delete=True,
                    hooks=ResourceHookBinding(on_error=[ErrorHook(f"{name}-taken", _explain)]),
                ),
            ),
        )
    return made[account]


def _explain(failure: ErrorHookArgs) -> bool:
    """Explain a creation that failed because the role was created by another run in the meantime.

    AWS's message asks for a suffix, which this role cannot have. There is no retry: the planned create would
    fail each time.
    """
    if any(_TAKEN in error for error in failure.errors):
        pulumi.log.error(_RUN_AGAIN)
    return False
