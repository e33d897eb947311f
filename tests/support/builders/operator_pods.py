"""Builders of valid pods, containers and Services for the operator runner."""

from pathlib import Path

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.operator_runner.connect_proxy import Backend
from pulumi_holdfast.rehearsal.operator_runner.controllers import Container


def container(**overrides: JsonValue) -> Json:
    """A container with the port 8080 (`http`) and the readiness probe /readyz."""
    return {
        "name": "controller",
        "image": "registry.example/controller:v1",
        "args": ["--verbose"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}},
        "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}},
        **overrides,
    }


def pod(
    *,
    name: str = "controller-1",
    namespace: str = "jobset-system",
    labels: "Json | None" = None,
    metadata: "Json | None" = None,
    spec: "Json | None" = None,
    status: "Json | None" = None,
    of: "Json | None" = None,
) -> Json:
    """A scheduled pod of the JobSet controller with the container `of`; other arguments are merged."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{name}",
            "labels": {"app.kubernetes.io/name": "jobset", **(labels or {})},
            **(metadata or {}),
        },
        "spec": {"nodeName": "system-0", "containers": [of or container()], **(spec or {})},
        "status": {"phase": "Pending", **(status or {})},
    }


def service(
    *,
    ip: str = "10.0.0.7",
    port: int = 443,
    target: int | str | None = "http",
    selector: "Json | None" = None,
) -> Json:
    """A Service for `pod()`; a target of None is omitted."""
    targeted: Json = {} if target is None else {"targetPort": target}
    selected = {"app.kubernetes.io/name": "jobset"} if selector is None else selector
    return {
        "metadata": {"name": "webhook", "namespace": "jobset-system"},
        "spec": {
            "clusterIP": ip,
            "clusterIPs": [ip],
            "selector": selected,
            "ports": [{"port": port, **targeted}],
        },
    }


def backend(*, of: "Json | None" = None, local_port: int = 40_000, ready: bool = True) -> Backend:
    """A pod whose process serves the container port 8080 on `local_port`."""
    return Backend(pod=of or pod(), ports={8080: local_port}, ready=ready)


def resolved_container(
    *,
    args: tuple[str, ...] = (),
    variables: dict[str, str] | None = None,
    ports: dict[int, int] | None = None,
    mounts: dict[str, Path] | None = None,
    files: dict[Path, str] | None = None,
    market: str = "",
) -> Container:
    """A resolved container with the local port p + 10,000 for each port p."""
    return Container(
        namespace="operators",
        args=args,
        variables=variables or {},
        ports=ports or {port: port + 10_000 for port in (8080, 8081, 8082, 8443, 9443)},
        mounts=mounts or {},
        files=files or {},
        folder=Path("/pods/one"),
        market=market,
        kubelets=Path("/kubelets"),
    )
