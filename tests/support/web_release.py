"""A chart of one Deployment, `web`, and releases of it."""

import json
import subprocess
from pathlib import Path

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.kubernetes_provider.apply import manager_for
from holdfast.simulator.kubernetes_provider.helm import OWNER_LABEL, ChartMirror, Helm, revisions
from holdfast.simulator.kubernetes_provider.operation import RELEASE
from holdfast.simulator.kubernetes_provider.releases import Releases
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.values import Properties, Value
from tests.support.kubernetes_operations import Resource
from tests.support.kubernetes_stack import TOOLS

_DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {size: {{ required "size is not set" .Values.size | quote }}}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {{ .Values.nodeSelector | toJson }}
      containers: [{name: c, image: a}]
"""

NOWHERE: Properties = {"nobody": "has-this"}


def web_charts(folder: Path) -> ChartMirror:
    """A mirror in `folder` with the chart `web`, version 1.0.0: a Deployment of one pod."""
    templates = folder / "charts" / "web" / "templates"
    templates.mkdir(parents=True)
    (templates / "deployment.yaml").write_text(_DEPLOYMENT)
    described = {"apiVersion": "v2", "name": "web", "version": "1.0.0"}
    (templates.parent / "Chart.yaml").write_text(json.dumps(described))
    (templates.parent / "values.yaml").write_text(json.dumps({"size": "small", "nodeSelector": {}}))
    return ChartMirror(folder / "charts", base=folder)


def release(client: KubeClient, kubeconfig: Path, charts: ChartMirror, name: str = "one") -> Resource:
    helm = Helm(program=TOOLS / "helm", kubeconfig=kubeconfig)
    releases = Releases(helm=helm, charts=charts, faults=Faults())
    return Resource(client=client, token=RELEASE, name=name, resources=releases)


def web(namespace: str, *, timeout: int = 60, **values: Value) -> Properties:
    return {
        "name": "web",
        "namespace": namespace,
        "chart": "oci://registry.example/web",
        "version": "1.0.0",
        "timeout": timeout,
        "values": values,
    }


def label(client: KubeClient, namespace: str) -> JsonValue:
    live = client.get("apps/v1", "Deployment", "web", namespace) or {}
    return mapping(mapping(live.get("metadata")).get("labels")).get("size")


def statuses(client: KubeClient, namespace: str) -> list[str]:
    return [revision.status for revision in revisions(client, namespace, "web")]


def kill_helm_at_work(
    client: KubeClient,
    kubeconfig: Path,
    charts: ChartMirror,
    namespace: str,
    resource: Resource,
    *,
    first: bool,
) -> None:
    """Leave a release as helm leaves it when it is killed while it waits for a pod that never runs."""
    owner = manager_for(resource.operation.urn).rpartition("-")[2]
    verb = ["install", "--labels", f"{OWNER_LABEL}={owner}"] if first else ["upgrade"]
    selector = "nodeSelector.nobody=has-this"
    helm = [*verb, "web", charts.directory / "web", "--namespace", namespace, "--wait", "--set", selector]
    process = subprocess.Popen(
        [TOOLS / "helm", *helm, "--kubeconfig", kubeconfig],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    client.wait_for(
        "apps/v1",
        "Deployment",
        "web",
        namespace=namespace,
        timeout_seconds=60,
        condition=_runs_nowhere,
        what="helm is at work",
    )
    process.kill()
    process.wait()


def _runs_nowhere(found: "Json | None") -> bool:
    spec = mapping(mapping(mapping((found or {}).get("spec")).get("template")).get("spec"))
    return spec.get("nodeSelector") == NOWHERE
