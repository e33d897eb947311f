"""A training namespace's way to its own checkpoints in Cloud Storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_gcp.storage import ManagedFolder, ManagedFolderIamMember

from holdfast.components.iam.principals import ProjectIdentities

if TYPE_CHECKING:
    from pulumi import Input

# Read, write, list and delete, and nothing about who else may.
_ROLE: Final = "roles/storage.objectUser"


@dataclass(frozen=True, kw_only=True)
class CheckpointAccessArgs:
    """Whose way it is and where to.

    `project` and `project_number` are the cluster's; `namespace` and `service_account` say which pods, in every cluster
    of that project: two that share both names share their checkpoints. `bucket` is the bucket's name, `folder` the
    folder in it (no slashes).
    """

    project: str
    project_number: str
    namespace: str
    service_account: str
    bucket: Input[str]
    folder: str


class CheckpointAccess(ComponentResource):
    """Lets the pods of one service account reach one folder of the bucket, and nothing else.

    Creates the ManagedFolder, which is what Cloud Storage can give rights to, and the ManagedFolderIamMember that
    gives them. Depend on the cluster: Google Cloud knows no pods of a project before its first one. Neither namespace
    nor service account need be there yet. When it goes the checkpoints stay, and none of the namespace's pods reaches
    them.
    """

    def __init__(self, name: str, args: CheckpointAccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointAccess", name, None, opts)
        folder = ManagedFolder(
            f"{name}-folder",
            bucket=args.bucket,
            # With the slash: rights to `vision` would be rights to `vision-2/` too.
            name=f"{args.folder}/",
            # Of the folder alone: its objects stay where they are, under names that begin as before.
            force_destroy=True,
            opts=ResourceOptions(parent=self),
        )
        ManagedFolderIamMember(
            f"{name}-trainers",
            bucket=folder.bucket,
            managed_folder=folder.name,
            role=_ROLE,
            member=_trainers(args),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


def _trainers(args: CheckpointAccessArgs) -> str:
    identities = ProjectIdentities(project=args.project, number=args.project_number)
    return identities.principal(namespace=args.namespace, service_account=args.service_account)
