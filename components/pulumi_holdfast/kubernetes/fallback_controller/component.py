"""The fallback controller: its Deployment, Service, disruption budget and namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.fallback_controller.access import ControllerAccess
from pulumi_holdfast.kubernetes.fallback_controller.clusters import (
    CONFIG_MAP,
    OtherCluster,
    arguments,
    config_map_data,
    mounts,
    volumes,
)
from pulumi_holdfast.kubernetes.fallback_controller.program import (
    mounts_of_container,
    program_of_container,
    volumes_of_pod,
)
from pulumi_holdfast.kubernetes.fallback_controller.transfer_policy import TransferPolicy
from pulumi_holdfast.kubernetes.fallback_controller.write_policy import ControllerWritePolicy
from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.kubernetes.network import isolated_spec, network_policy, system_spec
from pulumi_holdfast.kubernetes.operators.pod_settings import (
    SYSTEM_NODE_SELECTOR,
    SYSTEM_PRIORITY_CLASS,
    SYSTEM_TOLERATIONS,
    allow_system_priority,
    spread_over_zones,
)
from pulumi_holdfast.ladder.labels import (
    CONTROLLER,
    CONTROLLER_NAMESPACE,
    LEASE,
    RESERVATION_NAMESPACE,
    RESERVATION_PRIORITY,
    RESERVATION_PRIORITY_CLASS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input, Resource

    from pulumi_holdfast.kubernetes.fallback_controller.access import Users
    from pulumi_holdfast.kubernetes.fallback_controller.program import ControllerImages
    from pulumi_holdfast.ladder.json import Json


#: The labels of its pods.
LABELS: Final[Mapping[str, str]] = {
    "app.kubernetes.io/name": CONTROLLER,
    "app.kubernetes.io/component": "controller",
}

#: The port of metrics and probes.
PORT: Final = 8080

#: Pod Security Standard "restricted", with a read-only root file system.
_CONTAINER_SECURITY_CONTEXT: Final[Json] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_POD_SECURITY_CONTEXT: Final[Json] = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}

#: For Prometheus installations that discover targets by annotations.
_SCRAPE_ANNOTATIONS: Final[Mapping[str, str]] = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(PORT),
    "prometheus.io/path": "/metrics",
}


#: The volume with the URL of the webhook, and the key of the URL in its Secret.
_WEBHOOK: Final = "webhook"
_WEBHOOK_FOLDER: Final = "/var/run/secrets/holdfast/webhook"
WEBHOOK_KEY: Final = "url"


def deployment_spec(
    images: ControllerImages,
    replicas: int,
    webhook_secret: str | None = None,
    karpenter_metrics: str | None = None,
    clusters: Sequence[OtherCluster] = (),
) -> Json:
    """Return the Deployment's specification; one replica is the leader, others stand by on other nodes.

    `webhook_secret`: the Secret with the URL that people are notified through; None for no notifications.
    `karpenter_metrics`: the address of Karpenter's metrics, which have the prices of pools; None for a cluster without them.
    `clusters`: the other clusters of ladders.
    """
    mounted = [*volumes_of_pod(images.archives), *_webhook_volumes(webhook_secret), *volumes(clusters)]
    return {
        "replicas": replicas,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS, "annotations": _SCRAPE_ANNOTATIONS},
            "spec": {
                "serviceAccountName": CONTROLLER,
                "nodeSelector": SYSTEM_NODE_SELECTOR,
                "tolerations": list(SYSTEM_TOLERATIONS),
                "priorityClassName": SYSTEM_PRIORITY_CLASS,
                "affinity": spread_over_zones(LABELS),
                "securityContext": _POD_SECURITY_CONTEXT,
                "containers": [
                    _container(
                        images,
                        has_webhook=webhook_secret is not None,
                        karpenter_metrics=karpenter_metrics,
                        clusters=clusters,
                    )
                ],
                **({"volumes": mounted} if mounted else {}),
            },
        },
    }


def _webhook_volumes(secret: str | None) -> Sequence[Json]:
    # Optional: a controller without notifications moves jobs all the same.
    return [] if secret is None else [{"name": _WEBHOOK, "secret": {"secretName": secret, "optional": True}}]


def _container(
    images: ControllerImages,
    *,
    has_webhook: bool,
    karpenter_metrics: str | None,
    clusters: Sequence[OtherCluster],
) -> Json:
    webhook: Json = {"name": _WEBHOOK, "mountPath": _WEBHOOK_FOLDER, "readOnly": True}
    mounted = [*mounts_of_container(images.archives), *([webhook] if has_webhook else []), *mounts(clusters)]
    return {
        "name": "controller",
        "image": images.controller,
        "imagePullPolicy": "IfNotPresent",
        **program_of_container(images.archives),
        "args": [
            f"--namespace={CONTROLLER_NAMESPACE}",
            f"--lease={LEASE}",
            f"--port={PORT}",
            f"--placeholder-image={images.placeholder}",
            *([f"--webhook-url-file={_WEBHOOK_FOLDER}/{WEBHOOK_KEY}"] if has_webhook else []),
            *([f"--karpenter-metrics={karpenter_metrics}"] if karpenter_metrics else []),
            *arguments(clusters),
        ],
        **({"volumeMounts": mounted} if mounted else {}),
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 20},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": _CONTAINER_SECURITY_CONTEXT,
    }


def metrics_service_spec() -> Json:
    """Return the specification of the headless Service, which exposes each replica's metrics."""
    return {
        "clusterIP": "None",
        "selector": LABELS,
        "ports": [{"name": "http", "port": PORT, "targetPort": "http"}],
    }


def disruption_budget_spec() -> Json:
    """Return the specification of the PodDisruptionBudget: one replica is drained at a time."""
    return {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}


_POD_SECURITY = {"pod-security.kubernetes.io/enforce": "restricted"}


@dataclass(frozen=True, kw_only=True)
class FallbackControllerArgs:
    """With more than one replica, the others stand by for the leader.

    `webhook_secret`: a Secret in the controller's namespace, whose key `url` is a webhook that people are notified through.
    `karpenter_metrics`: the address of Karpenter's metrics, which have the prices of pools; None for a cluster without them.
    `clusters`: the other clusters of ladders, to which jobs may move. `accepted`: the user names of the controllers of other clusters whose
    jobs may run here. `scrapers`: the namespaces and blocks of addresses that reach its metrics.
    """

    images: ControllerImages
    replicas: int
    webhook_secret: str | None = None
    karpenter_metrics: str | None = None
    clusters: Sequence[OtherCluster] = ()
    accepted: Users = ()
    scrapers: Sequence[str] = ()


class FallbackController(ComponentResource):
    """The controller that moves jobs down and up their ladders (`holdfast:index:FallbackController`).

    Creates its namespace `holdfast-system` with the Deployment, immutable ConfigMaps with its program, a Service
    for its metrics and, with several replicas, a PodDisruptionBudget; `holdfast-reservations` for placeholder pods, with their PriorityClass; and
    a NetworkPolicy in both; its permissions (ControllerAccess) with the policy that limits what it may change (ControllerWritePolicy). With other clusters it creates
    their ConfigMap, and a TransferPolicy. Depend on the definition of FallbackPolicy. TrainingNamespace binds its
    permissions for jobs. Delete jobs before it: a job that it has suspended stays suspended.
    """

    def __init__(self, name: str, args: FallbackControllerArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:FallbackController", name, None, opts)
        own: Json = {"name": CONTROLLER, "namespace": CONTROLLER_NAMESPACE, "labels": LABELS}

        def made(
            part: str,
            api_version: str,
            kind: str,
            fields: Mapping[str, Input[object]],
            after: Sequence[Resource] = (),
            unchanged: Sequence[str] = (),
        ) -> KubernetesObject:
            opts = ResourceOptions(parent=self, depends_on=after, ignore_changes=list(unchanged))
            return KubernetesObject(f"{name}-{part}", api_version, kind, fields, opts=opts)

        namespaces = [
            made(each, "v1", "Namespace", {"metadata": {"name": each, "labels": _POD_SECURITY}})
            for each in (CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE)
        ]
        for each, spec in (
            (CONTROLLER_NAMESPACE, system_spec(args.scrapers)),
            (RESERVATION_NAMESPACE, isolated_spec()),
        ):
            opts = ResourceOptions(parent=self, depends_on=namespaces)
            network_policy(f"{name}-{each}-network", each, spec, opts)
        placeholders = {
            "metadata": {"name": RESERVATION_PRIORITY_CLASS},
            "description": "Placeholders that reserve capacity for a job that is about to return to a better tier.",
            "value": RESERVATION_PRIORITY,
            # Placeholder pods wait for free capacity and preempt nothing.
            "preemptionPolicy": "Never",
        }
        leaves = bool(args.clusters)
        before: list[Resource] = [
            *namespaces,
            made("priority", "scheduling.k8s.io/v1", "PriorityClass", placeholders),
            allow_system_priority(
                f"{name}-own-priority",
                CONTROLLER_NAMESPACE,
                ResourceOptions(parent=self, depends_on=namespaces),
            ),
            ControllerAccess(
                f"{name}-access",
                opts=ResourceOptions(parent=self, depends_on=namespaces),
                leaves=leaves,
                accepts=bool(args.accepted),
            ),
            ControllerWritePolicy(
                f"{name}-writes",
                opts=ResourceOptions(parent=self),
                placeholder_image=args.images.placeholder,
                transfers=leaves,
            ),
        ]
        if leaves or args.accepted:
            opts = ResourceOptions(parent=self)
            before.append(
                TransferPolicy(f"{name}-transfers", opts=opts, leaves=leaves, accounts=args.accepted)
            )
        if leaves:
            connections = {"metadata": {**own, "name": CONFIG_MAP}, "data": config_map_data(args.clusters)}
            before.append(made("clusters", "v1", "ConfigMap", connections, namespaces))
        for archive in args.images.archives:
            program = {
                "metadata": {**own, "name": archive.config_map},
                "immutable": True,
                "binaryData": archive.binary_data,
            }
            part = f"{archive.name}-{archive.digest[:16]}"
            # Its name says what it contains: other bytes are only another compression of it.
            before.append(made(part, "v1", "ConfigMap", program, namespaces, unchanged=["binaryData"]))
        pods = deployment_spec(
            args.images, args.replicas, args.webhook_secret, args.karpenter_metrics, args.clusters
        )
        made("deployment", "apps/v1", "Deployment", {"metadata": own, "spec": pods}, before)
        made("metrics", "v1", "Service", {"metadata": own, "spec": metrics_service_spec()}, before)
        if args.replicas > 1:
            budget: Json = {"metadata": own, "spec": disruption_budget_spec()}
            made("disruption-budget", "policy/v1", "PodDisruptionBudget", budget, before)
        self.register_outputs({})
