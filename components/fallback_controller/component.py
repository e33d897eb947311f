"""The component that runs the fallback controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import Namespace, Service
from pulumi_kubernetes.policy.v1 import PodDisruptionBudget
from pulumi_kubernetes.scheduling.v1 import PriorityClass

from holdfast.components.fallback_controller.access import ControllerAccess
from holdfast.components.fallback_controller.pod import (
    LABELS,
    deployment_spec,
    disruption_budget_spec,
    metrics_service_spec,
)
from holdfast.scheduling.labels import (
    CONTROLLER,
    CONTROLLER_NAMESPACE,
    RESERVATION_NAMESPACE,
    RESERVATION_PRIORITY,
    RESERVATION_PRIORITY_CLASS,
)

if TYPE_CHECKING:
    from pulumi_kubernetes.apps.v1 import DeploymentSpecArgsDict
    from pulumi_kubernetes.core.v1 import ServiceSpecArgsDict
    from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict
    from pulumi_kubernetes.policy.v1 import PodDisruptionBudgetSpecArgsDict

    from holdfast.components.fallback_controller.image import ControllerImages

_POD_SECURITY = {"pod-security.kubernetes.io/enforce": "restricted"}


@dataclass(frozen=True, kw_only=True)
class FallbackControllerArgs:
    """With more than one of `replicas` the others stand by for the one that leads."""

    images: ControllerImages
    replicas: int


class FallbackController(ComponentResource):
    """The controller that moves jobs down their ladders, and back up.

    Creates its namespace `holdfast-system` with the Deployment, a Service for its metrics and, for more than one replica,
    a PodDisruptionBudget; `holdfast-holding` for placeholder pods, with their PriorityClass; and what it may do
    (ControllerAccess). It needs the cluster's FallbackPolicyDefinition; what it may do to the jobs of a training namespace
    is bound there, by TrainingNamespace. Jobs should be gone before it is: one that it has suspended stays so.
    """

    def __init__(self, name: str, args: FallbackControllerArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:FallbackController", name, None, opts)
        namespaces = [
            Namespace(
                f"{name}-{namespace}",
                metadata={"name": namespace, "labels": _POD_SECURITY},
                opts=ResourceOptions(parent=self),
            )
            for namespace in (CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE)
        ]
        priority = PriorityClass(
            f"{name}-priority",
            metadata={"name": RESERVATION_PRIORITY_CLASS},
            description="Placeholders that hold capacity for a job that is about to move up its ladder.",
            value=RESERVATION_PRIORITY,
            # A placeholder waits for room: it takes none from anybody.
            preemption_policy="Never",
            opts=ResourceOptions(parent=self),
        )
        access = ControllerAccess(f"{name}-access", opts=ResourceOptions(parent=self, depends_on=namespaces))
        inside = ResourceOptions(parent=self, depends_on=[*namespaces, priority, access])
        metadata: ObjectMetaArgsDict = {
            "name": CONTROLLER,
            "namespace": CONTROLLER_NAMESPACE,
            "labels": LABELS,
        }
        Deployment(
            f"{name}-deployment",
            metadata=metadata,
            spec=cast("DeploymentSpecArgsDict", deployment_spec(args.images, args.replicas)),
            opts=inside,
        )
        Service(
            f"{name}-metrics",
            metadata=metadata,
            spec=cast("ServiceSpecArgsDict", metrics_service_spec()),
            opts=inside,
        )
        if args.replicas > 1:
            PodDisruptionBudget(
                f"{name}-disruption-budget",
                metadata=metadata,
                spec=cast("PodDisruptionBudgetSpecArgsDict", disruption_budget_spec()),
                opts=inside,
            )
        self.register_outputs({})
