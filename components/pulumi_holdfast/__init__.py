"""Holdfast: spot-first training clusters on EKS, AKS and GKE, and proof that jobs have a fallback.

The components for programs are here by their names. Each is imported when it is used, with the SDK of its cloud alone.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pulumi_holdfast.aws.checkpoints import CheckpointBucket as S3Checkpoints
    from pulumi_holdfast.aws.checkpoints import CheckpointBucketArgs as S3CheckpointsArgs
    from pulumi_holdfast.aws.control_plane.component import EksCluster, EksClusterArgs
    from pulumi_holdfast.aws.karpenter.component import EksKarpenter, EksKarpenterArgs
    from pulumi_holdfast.azure.checkpoints import CheckpointBucket as BlobCheckpoints
    from pulumi_holdfast.azure.checkpoints import CheckpointBucketArgs as BlobCheckpointsArgs
    from pulumi_holdfast.azure.pools import AksPool, AksPoolArgs
    from pulumi_holdfast.gcp.checkpoints import CheckpointBucket as GcsCheckpoints
    from pulumi_holdfast.gcp.checkpoints import CheckpointBucketArgs as GcsCheckpointsArgs
    from pulumi_holdfast.gcp.pools import GkePool, GkePoolArgs
    from pulumi_holdfast.kubernetes.fallback_controller.component import (
        FallbackController,
        FallbackControllerArgs,
    )
    from pulumi_holdfast.kubernetes.karpenter_pool import KarpenterPool, KarpenterPoolArgs
    from pulumi_holdfast.kubernetes.operators.job_operators import Operators
    from pulumi_holdfast.kubernetes.outputs import stack_outputs
    from pulumi_holdfast.kubernetes.training_namespace import TrainingNamespace, TrainingNamespaceArgs
    from pulumi_holdfast.training_clusters import AksTrainingCluster, EksTrainingCluster, GkeTrainingCluster

#: Name → its module in this package, and its name there.
_EXPORTS: Final = {
    "AksPool": ("azure.pools", "AksPool"),
    "AksPoolArgs": ("azure.pools", "AksPoolArgs"),
    "AksTrainingCluster": ("training_clusters", "AksTrainingCluster"),
    "BlobCheckpoints": ("azure.checkpoints", "CheckpointBucket"),
    "BlobCheckpointsArgs": ("azure.checkpoints", "CheckpointBucketArgs"),
    "EksCluster": ("aws.control_plane.component", "EksCluster"),
    "EksClusterArgs": ("aws.control_plane.component", "EksClusterArgs"),
    "EksKarpenter": ("aws.karpenter.component", "EksKarpenter"),
    "EksKarpenterArgs": ("aws.karpenter.component", "EksKarpenterArgs"),
    "EksTrainingCluster": ("training_clusters", "EksTrainingCluster"),
    "FallbackController": ("kubernetes.fallback_controller.component", "FallbackController"),
    "FallbackControllerArgs": ("kubernetes.fallback_controller.component", "FallbackControllerArgs"),
    "GcsCheckpoints": ("gcp.checkpoints", "CheckpointBucket"),
    "GcsCheckpointsArgs": ("gcp.checkpoints", "CheckpointBucketArgs"),
    "GkePool": ("gcp.pools", "GkePool"),
    "GkePoolArgs": ("gcp.pools", "GkePoolArgs"),
    "GkeTrainingCluster": ("training_clusters", "GkeTrainingCluster"),
    "KarpenterPool": ("kubernetes.karpenter_pool", "KarpenterPool"),
    "KarpenterPoolArgs": ("kubernetes.karpenter_pool", "KarpenterPoolArgs"),
    "Operators": ("kubernetes.operators.job_operators", "Operators"),
    "S3Checkpoints": ("aws.checkpoints", "CheckpointBucket"),
    "S3CheckpointsArgs": ("aws.checkpoints", "CheckpointBucketArgs"),
    "TrainingNamespace": ("kubernetes.training_namespace", "TrainingNamespace"),
    "TrainingNamespaceArgs": ("kubernetes.training_namespace", "TrainingNamespaceArgs"),
    "stack_outputs": ("kubernetes.outputs", "stack_outputs"),
}

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll] - `__getattr__` has them
    "AksPool",
    "AksPoolArgs",
    "AksTrainingCluster",
    "BlobCheckpoints",
    "BlobCheckpointsArgs",
    "EksCluster",
    "EksClusterArgs",
    "EksKarpenter",
    "EksKarpenterArgs",
    "EksTrainingCluster",
    "FallbackController",
    "FallbackControllerArgs",
    "GcsCheckpoints",
    "GcsCheckpointsArgs",
    "GkePool",
    "GkePoolArgs",
    "GkeTrainingCluster",
    "KarpenterPool",
    "KarpenterPoolArgs",
    "Operators",
    "S3Checkpoints",
    "S3CheckpointsArgs",
    "TrainingNamespace",
    "TrainingNamespaceArgs",
    "stack_outputs",
]


def __getattr__(name: str) -> object:
    """A component, or the version of the package."""
    if name == "__version__":
        return version("pulumi-holdfast")
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, inside = _EXPORTS[name]
    return getattr(import_module(f"{__name__}.{module}"), inside)


def __dir__() -> list[str]:
    """The names of the components, and of what is imported already."""
    return sorted({*globals(), *_EXPORTS, "__version__"})
