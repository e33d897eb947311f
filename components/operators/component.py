"""The operators that run training jobs."""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, ResourceOptions

from holdfast.components.operators.charted_operator import ChartedOperator, ChartedOperatorArgs
from holdfast.components.operators.jobset import jobset_values
from holdfast.components.operators.kuberay import kuberay_values


@dataclass(frozen=True, kw_only=True)
class OperatorsArgs:
    """`charts` is a directory or address of charts, `images` a registry; None: upstream's. Versions are the operators'.

    With more than one of `replicas` an operator elects a leader; one is right where nothing would take over.
    """

    charts: str | None
    images: str | None = None
    jobset_version: str
    kuberay_version: str
    replicas: int


class Operators(ComponentResource):
    """JobSet and KubeRay.

    Creates each one in its own namespace, `jobset-system` and `kuberay-system`: the release of its CRDs, then that of
    its controller. KubeRay must outlive the namespaces whose RayJobs carry its finalizer.
    """

    def __init__(self, name: str, args: OperatorsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:Operators", name, None, opts)
        ChartedOperator(
            f"{name}-jobset",
            ChartedOperatorArgs(
                namespace="jobset-system",
                release="jobset",
                crds_release="jobset-crds",
                crds_chart="jobset-crds",
                charts=args.charts,
                chart="jobset",
                version=args.jobset_version,
                chart_version=args.jobset_version,
                values=jobset_values(args.jobset_version, args.images, args.replicas),
            ),
            opts=ResourceOptions(parent=self),
        )
        ChartedOperator(
            f"{name}-kuberay",
            ChartedOperatorArgs(
                namespace="kuberay-system",
                release="kuberay-operator",
                crds_release="kuberay-crds",
                crds_chart="kuberay-crds",
                charts=args.charts,
                chart="kuberay-operator",
                version=args.kuberay_version,
                chart_version=args.kuberay_version,
                values=kuberay_values(args.kuberay_version, args.images, args.replicas),
            ),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
