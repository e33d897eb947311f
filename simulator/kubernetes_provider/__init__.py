"""Stands in for the kubernetes provider plugin: sends objects to the API server of a rehearsal.

What it decides follows pulumi-kubernetes 4.34, so that the same stack gives the same objects with either.
"""

from holdfast.simulator.kubernetes_provider.helm import ChartMirror
from holdfast.simulator.kubernetes_provider.provider import KubernetesProvider

__all__ = ["ChartMirror", "KubernetesProvider"]
