"""Checkpoints in a local directory: a volume for each training namespace, and its claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulumi import ComponentResource, Output, ResourceOptions

from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject

#: The name of the PersistentVolumeClaim in each training namespace.
CLAIM: Final = "checkpoints"

#: Kubernetes requires a size; a directory has none, and nothing enforces it.
NOMINAL_SIZE: Final = "1Ti"


@dataclass(frozen=True, kw_only=True)
class CheckpointBucketArgs:
    """`directory` is an absolute path; each of the training `namespaces` gets a folder in it."""

    directory: str
    namespaces: Sequence[str]


class CheckpointBucket(ComponentResource):
    """The local checkpoint store (`holdfast:index:CheckpointBucket`): a directory, not an object store.

    Creates a PersistentVolume for each training namespace, reserved for its claim. A training pod
    opens a `file://` address as easily as a bucket's; an object store would be one more process to run. The
    files stay when the stack is destroyed.
    """

    def __init__(self, name: str, args: CheckpointBucketArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointBucket", name, None, opts)
        self._directory = Path(args.directory)
        for namespace in args.namespaces:
            KubernetesObject(
                f"{name}-{namespace}",
                "v1",
                "PersistentVolume",
                {
                    "metadata": {"name": volume_name(namespace)},
                    "spec": {
                        "capacity": {"storage": NOMINAL_SIZE},
                        "accessModes": ["ReadWriteMany"],
                        # Checkpoints outlive the claim, the namespace and the stack.
                        "persistentVolumeReclaimPolicy": "Retain",
                        # Empty, not absent: an absent class means the default class, which provisions volumes.
                        "storageClassName": "",
                        # No other claim can bind to the volume.
                        "claimRef": {"namespace": namespace, "name": CLAIM},
                        "hostPath": {"path": str(self._directory / namespace), "type": "DirectoryOrCreate"},
                    },
                },
                opts=ResourceOptions(parent=self),
            )
        self.register_outputs({})

    def uri(self, namespace: str) -> Output[str]:
        """The `file://` address of a namespace's folder."""
        return Output.from_input((self._directory / namespace).as_uri())


def volume_name(namespace: str) -> str:
    """Return the name of a namespace's volume; volumes are not namespaced, so it contains the namespace."""
    return f"checkpoints-{namespace}"


@dataclass(frozen=True, kw_only=True)
class CheckpointClaimArgs:
    """`namespace` is the training namespace's name; it and its volume must exist."""

    namespace: str


class CheckpointClaim(ComponentResource):
    """The claim that training pods mount for their checkpoints (`holdfast:index:CheckpointClaim`).

    Creates the PersistentVolumeClaim `checkpoints` in the namespace, bound to the namespace's volume.
    """

    def __init__(self, name: str, args: CheckpointClaimArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointClaim", name, None, opts)
        KubernetesObject(
            f"{name}-claim",
            "v1",
            "PersistentVolumeClaim",
            {
                "metadata": {"name": CLAIM, "namespace": args.namespace},
                "spec": {
                    "accessModes": ["ReadWriteMany"],
                    "storageClassName": "",
                    "volumeName": volume_name(args.namespace),
                    "resources": {"requests": {"storage": NOMINAL_SIZE}},
                },
            },
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
