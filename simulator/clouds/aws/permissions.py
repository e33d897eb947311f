"""What the caller may do in IAM: everything, or read.

A caller who only reads is one to whom AWS's own policy for that is attached, by hand, in the cloud's state: an
`aws:iam/userPolicyAttachment:UserPolicyAttachment` of the user `rehearsal` and the policy READ_ONLY.
"""

from typing import Final

from holdfast.simulator.clouds.aws.api_server import CALLER
from holdfast.simulator.clouds.aws.names import PARTITION
from holdfast.simulator.clouds.catalogue import Compute, Making, Refuse, RefuseRemoval, Removal
from holdfast.simulator.clouds.state import Inventory

ATTACHMENT: Final = "aws:iam/userPolicyAttachment:UserPolicyAttachment"
READ_ONLY: Final = f"arn:{PARTITION}:iam::aws:policy/ReadOnlyAccess"
_USER: Final = CALLER.rpartition("/")[2]


def writing(action: str, arn: Compute) -> Refuse:
    """Refuse an action (`iam:CreateRole`) on what has this ARN to a caller who only reads."""

    def refuse(making: Making) -> str | None:
        return _denied(action, str(arn(making))) if _only_reads(making.inventory) else None

    return refuse


def removing(action: str) -> RefuseRemoval:
    """Refuse an action that deletes to a caller who only reads."""

    def refuse(removal: Removal) -> str | None:
        where = str(removal.target.outputs.get("arn", removal.target.id))
        return _denied(action, where) if _only_reads(removal.inventory) else None

    return refuse


def _only_reads(inventory: Inventory) -> bool:
    return any(
        one.inputs.get("user") == _USER and one.inputs.get("policyArn") == READ_ONLY
        for one in inventory.of_type(ATTACHMENT)
    )


def _denied(action: str, resource: str) -> str:
    return (
        f"AccessDenied: User: {CALLER} is not authorized to perform: {action} on resource: {resource} "
        f"because no identity-based policy allows the {action} action"
    )
