"""The simulator of Pulumi's kubernetes provider: sends objects to the API server of the local control plane.

It follows pulumi-kubernetes 4.34, so the same stack creates the same objects with either provider.
"""

from pulumi_holdfast.rehearsal.kubernetes_provider.helm import ChartMirror
from pulumi_holdfast.rehearsal.kubernetes_provider.provider import KubernetesProvider

__all__ = ["ChartMirror", "KubernetesProvider"]
