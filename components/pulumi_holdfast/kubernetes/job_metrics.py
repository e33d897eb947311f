"""The metrics of jobs: exporters of what GPUs do and where pods run, and the objects by which a Prometheus finds them.

The exporters' projects publish charts, which bring a hundred more metrics, an agent with more rights, and monitors for one kind of
Prometheus. Here each has the metrics that the dashboard of jobs shows (`monitoring.JOB_PANELS`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.fallback_controller.component import LABELS
from pulumi_holdfast.kubernetes.kubernetes_object import RBAC, KubernetesObject, role_ref, rule
from pulumi_holdfast.kubernetes.operators.pod_settings import (
    SYSTEM_NODE_SELECTOR,
    SYSTEM_PRIORITY_CLASS,
    SYSTEM_TOLERATIONS,
    image,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    CONTROLLER,
    CONTROLLER_NAMESPACE,
    GPU_NODE,
    GPU_NODE_VALUE,
    JOBSET_NAME,
    POOL,
    RAY_CLUSTER,
)

#: The API versions of the monitors of Google's and Azure's managed services.
GOOGLE_API: Final = "monitoring.googleapis.com/v1"
AZURE_API: Final = "azmonitoring.coreos.com/v1"

#: Where node agents are, and pods may use the system priority classes. No NetworkPolicy of ours restricts it.
NAMESPACE: Final = "kube-system"
GPUS: Final = "dcgm-exporter"
STATE: Final = "kube-state-metrics"
#: The port of both exporters, by name.
_PORT: Final = "metrics"
INTERVAL: Final = "30s"

#: Fields of DCGM, each of which is a metric. None is a profiling one (`DCGM_FI_PROF_…`), which a GPU has for one reader only.
GPU_FIELDS: Final[Mapping[str, tuple[str, str]]] = {
    "DCGM_FI_DEV_GPU_UTIL": ("gauge", "GPU utilization (in %)."),
    "DCGM_FI_DEV_FB_USED": ("gauge", "Framebuffer memory used (in MiB)."),
    "DCGM_FI_DEV_FB_FREE": ("gauge", "Framebuffer memory free (in MiB)."),
    "DCGM_FI_DEV_POWER_USAGE": ("gauge", "Power draw (in W)."),
    "DCGM_FI_DEV_XID_ERRORS": ("gauge", "Value of the last XID error encountered."),
}
#: The metrics of kube-state-metrics, and the labels of objects that are labels of its metrics.
STATE_METRICS: Final = ("kube_node_labels", "kube_pod_info", "kube_pod_labels", "kube_pod_status_phase")
_STATE_LABELS: Final = f"pods=[{JOBSET_NAME},{RAY_CLUSTER}],nodes=[{POOL}]"

_GPU_CONFIG: Final = "/etc/holdfast/gpus.csv"
#: The kubelet's socket that says which pod has which GPU.
_POD_RESOURCES: Final = "/var/lib/kubelet/pod-resources"
_DRIVER: Final = "/usr/local/nvidia"


@dataclass(frozen=True, kw_only=True)
class CloudMetrics:
    """What a cloud has for metrics.

    `monitors` is the API version of the objects by which its managed service finds pods, None for a service that is configured
    outside of the cluster. `scrapers` are the namespaces or blocks of addresses that its requests come from. `driver` is the folder
    of NVIDIA's driver on nodes, None where the container runtime mounts it.
    """

    monitors: str | None = None
    scrapers: Sequence[str] = ()
    driver: str | None = None


#: A scraper of Amazon has addresses in the subnets of the cluster.
EKS_METRICS: Final = CloudMetrics(scrapers=("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))
#: Collectors run in the one namespace or the other, by how the cluster got them.
GKE_METRICS: Final = CloudMetrics(
    monitors=GOOGLE_API, scrapers=("gke-gmp-system", "gmp-system"), driver="/home/kubernetes/bin/nvidia"
)
AKS_METRICS: Final = CloudMetrics(monitors=AZURE_API, scrapers=(NAMESPACE,))
#: A cluster of no cloud.
NO_CLOUD: Final = CloudMetrics()


def gpu_daemon_set_spec(image_reference: str, driver: str | None) -> Json:
    """Return the DaemonSet of dcgm-exporter, for the nodes of GPU pools.

    It requests no GPU: the container runtime gives it all of them, because its image asks so, or it is privileged and gets the
    driver from a folder of the node. It runs as root, to which the kubelet's socket belongs.
    """
    volumes: list[Json] = [
        {"name": "config", "configMap": {"name": f"holdfast-{GPUS}"}},
        {"name": "pod-resources", "hostPath": {"path": _POD_RESOURCES}},
    ]
    mounts: list[Json] = [
        {"name": "config", "mountPath": "/etc/holdfast", "readOnly": True},
        {"name": "pod-resources", "mountPath": _POD_RESOURCES, "readOnly": True},
    ]
    environment: list[Json] = [
        {"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"},
        {"name": "DCGM_EXPORTER_LISTEN", "value": ":9400"},
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]
    security: Json = {
        "runAsUser": 0,
        "runAsNonRoot": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    if driver is not None:
        volumes.append({"name": "driver", "hostPath": {"path": driver, "type": "Directory"}})
        mounts.append({"name": "driver", "mountPath": _DRIVER, "readOnly": True})
        environment.append({"name": "LD_LIBRARY_PATH", "value": f"{_DRIVER}/lib64"})
        security = {"privileged": True}
    container: Json = {
        "name": GPUS,
        "image": image_reference,
        "args": ["-f", _GPU_CONFIG],
        "env": environment,
        "ports": [{"name": _PORT, "containerPort": 9400}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": _PORT}, "initialDelaySeconds": 45},
        "livenessProbe": {"httpGet": {"path": "/health", "port": _PORT}, "initialDelaySeconds": 45},
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"cpu": "200m", "memory": "512Mi"},
        },
        "securityContext": security,
        "volumeMounts": mounts,
    }
    terms = [
        {"matchExpressions": [{"key": GPU_NODE, "operator": "In", "values": [GPU_NODE_VALUE]}]},
        # GKE's own label, on its GPU nodes.
        {"matchExpressions": [{"key": "cloud.google.com/gke-accelerator", "operator": "Exists"}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {
        "selector": {"matchLabels": _labels(GPUS)},
        "template": {
            "metadata": {"labels": _labels(GPUS)},
            "spec": {
                "affinity": {"nodeAffinity": required},
                "automountServiceAccountToken": False,
                "containers": [container],
                "priorityClassName": "system-node-critical",
                "tolerations": [{"operator": "Exists"}],
                "volumes": volumes,
            },
        },
    }


def state_deployment_spec(image_reference: str) -> Json:
    """Return the Deployment of kube-state-metrics, which reads pods and nodes alone."""
    container: Json = {
        "name": STATE,
        "image": image_reference,
        "args": [
            "--resources=nodes,pods",
            f"--metric-allowlist={','.join(STATE_METRICS)}",
            f"--metric-labels-allowlist={_STATE_LABELS}",
        ],
        "ports": [{"name": _PORT, "containerPort": 8080}, {"name": "telemetry", "containerPort": 8081}],
        "livenessProbe": {"httpGet": {"path": "/livez", "port": _PORT}, "initialDelaySeconds": 5},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "telemetry"}, "initialDelaySeconds": 5},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "replicas": 1,
        "selector": {"matchLabels": _labels(STATE)},
        "template": {
            "metadata": {"labels": _labels(STATE)},
            "spec": {
                "containers": [container],
                "nodeSelector": SYSTEM_NODE_SELECTOR,
                "priorityClassName": SYSTEM_PRIORITY_CLASS,
                "serviceAccountName": STATE_ACCOUNT,
                "tolerations": list(SYSTEM_TOLERATIONS),
            },
        },
    }


#: Other names than those of the projects' own installations, which the cluster may have.
STATE_ACCOUNT: Final = f"holdfast-{STATE}"


def _labels(exporter: str) -> Json:
    return {"app.kubernetes.io/name": exporter, "app.kubernetes.io/part-of": "holdfast"}


@dataclass(frozen=True, kw_only=True)
class Target:
    """Pods that are scraped: their namespace, their labels, the name of their port, and whether Prometheus adds the pod's name."""

    name: str
    namespace: str
    labels: Json
    port: str
    is_named: bool = False


#: Metrics of exporters are about other pods, so their labels `namespace` and `pod` must not be replaced by those of the target.
TARGETS: Final[Sequence[Target]] = (
    Target(name=GPUS, namespace=NAMESPACE, labels=_labels(GPUS), port=_PORT),
    Target(name=STATE, namespace=NAMESPACE, labels=_labels(STATE), port=_PORT),
    Target(name=CONTROLLER, namespace=CONTROLLER_NAMESPACE, labels=dict(LABELS), port="http", is_named=True),
)


def monitor(target: Target, api: str, labels: Mapping[str, str]) -> tuple[str, Json]:
    """Return the kind of a monitor of this API, and its fields; `labels` are those by which a Prometheus selects it."""
    name = f"holdfast-{target.name}"
    selector: Json = {"matchLabels": target.labels}
    if api == GOOGLE_API:
        # Without a namespace in the list, that of the metric stays.
        added: Json = {"metadata": ["pod"] if target.is_named else []}
        endpoint: Json = {"port": target.port, "interval": INTERVAL}
        spec: Json = {"selector": selector, "endpoints": [endpoint], "targetLabels": added}
        return "ClusterPodMonitoring", {"metadata": {"name": name}, "spec": spec}
    endpoint = {"port": target.port, "interval": INTERVAL, "honorLabels": True}
    # The limits of Azure's pipeline, which drops what exceeds them.
    limits: Json = {"labelLimit": 63, "labelNameLengthLimit": 511, "labelValueLengthLimit": 1023}
    own: Json = {"name": name, "namespace": target.namespace, "labels": {**labels}}
    return "PodMonitor", {
        "metadata": own,
        "spec": {
            "selector": selector,
            "podMetricsEndpoints": [endpoint],
            **(limits if api == AZURE_API else {}),
        },
    }


@dataclass(frozen=True, kw_only=True)
class JobMetricsArgs:
    """Arguments of `JobMetrics`.

    `gpus_image` and `state_image` are the tags of the exporters' images, which come from the registry `images`, None for the projects' own.
    `monitors` is the API version of the monitors, None for none; `labels` are those by which a Prometheus selects them, and with
    `has_controller` the fallback controller has one, too. `driver` is the folder of NVIDIA's driver on nodes, None where the container
    runtime mounts it.
    """

    images: str | None
    gpus_image: str
    state_image: str
    monitors: str | None
    has_controller: bool
    labels: Mapping[str, str]
    driver: str | None


class JobMetrics(ComponentResource):
    """The metrics of jobs (`holdfast:index:JobMetrics`).

    Creates dcgm-exporter on the nodes of GPU pools and kube-state-metrics on the system nodes, both in `kube-system`, with the metrics that
    the dashboard of jobs shows, and monitors of them and of the fallback controller. Depend on that: its namespace has a monitor.
    """

    def __init__(self, name: str, args: JobMetricsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:JobMetrics", name, None, opts)
        inside = ResourceOptions(parent=self)
        own: Json = {"namespace": NAMESPACE}
        fields = "\n".join(f"{field}, {kind}, {text}" for field, (kind, text) in GPU_FIELDS.items())
        config = KubernetesObject(
            f"{name}-gpus-config",
            "v1",
            "ConfigMap",
            {"metadata": {**own, "name": f"holdfast-{GPUS}"}, "data": {"gpus.csv": f"{fields}\n"}},
            opts=inside,
        )
        gpus = image(args.images, "nvcr.io/nvidia/k8s/dcgm-exporter")
        KubernetesObject(
            f"{name}-gpus",
            "apps/v1",
            "DaemonSet",
            {
                "metadata": {**own, "name": f"holdfast-{GPUS}"},
                "spec": gpu_daemon_set_spec(f"{gpus}:{args.gpus_image}", args.driver),
            },
            opts=ResourceOptions(parent=self, depends_on=[config]),
        )
        account = KubernetesObject(
            f"{name}-state-account",
            "v1",
            "ServiceAccount",
            {"metadata": {**own, "name": STATE_ACCOUNT}},
            opts=inside,
        )
        role = KubernetesObject(
            f"{name}-state-role",
            RBAC,
            "ClusterRole",
            {"metadata": {"name": STATE_ACCOUNT}, "rules": [rule("", ["nodes", "pods"], ["list", "watch"])]},
            opts=inside,
        )
        binding = KubernetesObject(
            f"{name}-state-binding",
            RBAC,
            "ClusterRoleBinding",
            {
                "metadata": {"name": STATE_ACCOUNT},
                "roleRef": role_ref("ClusterRole", STATE_ACCOUNT),
                "subjects": [{"kind": "ServiceAccount", "name": STATE_ACCOUNT, "namespace": NAMESPACE}],
            },
            opts=ResourceOptions(parent=self, depends_on=[account, role]),
        )
        state = image(args.images, "registry.k8s.io/kube-state-metrics/kube-state-metrics")
        KubernetesObject(
            f"{name}-state",
            "apps/v1",
            "Deployment",
            {
                "metadata": {**own, "name": STATE_ACCOUNT},
                "spec": state_deployment_spec(f"{state}:{args.state_image}"),
            },
            opts=ResourceOptions(parent=self, depends_on=[binding]),
        )
        api = args.monitors
        targets = [each for each in TARGETS if args.has_controller or each.name != CONTROLLER]
        if api is not None:
            for target in targets:
                kind, monitored = monitor(target, api, args.labels)
                KubernetesObject(f"{name}-{target.name}-monitor", api, kind, monitored, opts=inside)
        self.register_outputs({})
