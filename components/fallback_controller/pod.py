"""The controller's pods and what stands around them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.operators.pod_settings import SYSTEM_NODE_SELECTOR, SYSTEM_TOLERATIONS, apart
from holdfast.scheduling.labels import CONTROLLER, CONTROLLER_NAMESPACE, LEASE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.components.fallback_controller.image import ControllerImages
    from holdfast.scheduling.json import Json

#: By which its pods are found, and its program told from a simulated one.
LABELS: Final[Mapping[str, str]] = {
    "app.kubernetes.io/name": CONTROLLER,
    "app.kubernetes.io/component": "controller",
}

#: Of metrics and probes.
PORT: Final = 8080

#: What Pod Security calls restricted, for a program that writes no file.
_UNPRIVILEGED: Final[Json] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_AS_NOBODY: Final[Json] = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}

#: For Prometheus installations that find what to scrape by annotations.
_SCRAPED: Final[Mapping[str, str]] = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(PORT),
    "prometheus.io/path": "/metrics",
}


def deployment_spec(images: ControllerImages, replicas: int) -> Json:
    """Return the specification of the Deployment; one replica leads, a second stands by on another node."""
    return {
        "replicas": replicas,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS, "annotations": _SCRAPED},
            "spec": {
                "serviceAccountName": CONTROLLER,
                "nodeSelector": SYSTEM_NODE_SELECTOR,
                "tolerations": list(SYSTEM_TOLERATIONS),
                "affinity": apart(LABELS),
                "securityContext": _AS_NOBODY,
                "containers": [_container(images)],
            },
        },
    }


def _container(images: ControllerImages) -> Json:
    return {
        "name": "controller",
        "image": images.controller,
        "imagePullPolicy": "IfNotPresent",
        "args": [
            f"--namespace={CONTROLLER_NAMESPACE}",
            f"--lease={LEASE}",
            f"--port={PORT}",
            f"--placeholder-image={images.placeholder}",
        ],
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 20},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": _UNPRIVILEGED,
    }


def metrics_service_spec() -> Json:
    """Return the specification of the Service behind which each replica's metrics are: headless, one address each."""
    return {
        "clusterIP": "None",
        "selector": LABELS,
        "ports": [{"name": "http", "port": PORT, "targetPort": "http"}],
    }


def disruption_budget_spec() -> Json:
    """Return the specification of the budget under which nodes are drained one replica after the other."""
    return {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}
