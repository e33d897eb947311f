"""A training namespace's claim on its checkpoints, where these are on a volume."""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.core.v1 import PersistentVolumeClaim

from holdfast.components.checkpoints.directory import CLAIM, NOMINAL_SIZE, volume_name


@dataclass(frozen=True, kw_only=True)
class CheckpointClaimArgs:
    """`namespace` is the training namespace's name in the cluster; it and its volume must be there."""

    namespace: str


class CheckpointClaim(ComponentResource):
    """What a training pod mounts to reach its namespace's checkpoints.

    Creates the PersistentVolumeClaim `checkpoints` in the namespace, bound to the namespace's own volume.
    """

    def __init__(self, name: str, args: CheckpointClaimArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointClaim", name, None, opts)
        PersistentVolumeClaim(
            f"{name}-claim",
            metadata={"name": CLAIM, "namespace": args.namespace},
            spec={
                "access_modes": ["ReadWriteMany"],
                "storage_class_name": "",
                "volume_name": volume_name(args.namespace),
                "resources": {"requests": {"storage": NOMINAL_SIZE}},
            },
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
