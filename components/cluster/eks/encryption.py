"""The key that the cluster's secrets are encrypted with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_aws.kms import Key

if TYPE_CHECKING:
    from pulumi import Output

#: Days in which a deleted key can still be saved, and with it what it encrypts: KMS's longest and shortest.
_LONGEST_WINDOW: Final = 30
_SHORTEST_WINDOW: Final = 7


@dataclass(frozen=True, kw_only=True)
class SecretsKeyArgs:
    """`protected`: the key is not to be deleted, and if it is all the same there is a month to undo it."""

    cluster_name: str
    protected: bool


class SecretsKey(ComponentResource):
    """A customer key for a cluster's secrets, rotated once a year.

    Creates the key. Without it the cluster cannot read its own state: it must outlive the cluster. Its policy is KMS's
    default, which leaves to IAM who in the account uses it; EKS takes a grant from whoever creates the cluster.
    """

    arn: Output[str]

    def __init__(self, name: str, args: SecretsKeyArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:SecretsKey", name, None, opts)
        key = Key(
            f"{name}-key",
            description=f"Secrets of the EKS cluster {args.cluster_name}",
            enable_key_rotation=True,
            deletion_window_in_days=_LONGEST_WINDOW if args.protected else _SHORTEST_WINDOW,
            opts=ResourceOptions(parent=self, protect=True if args.protected else None),
        )
        self.arn = key.arn
        self.register_outputs({"arn": self.arn})
