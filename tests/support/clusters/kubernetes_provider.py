"""Programs, objects and Helm releases for the simulated `kubernetes` provider, on a real API server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.engine import CommandOutcome, Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.checkpoint import PendingOperation
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.process import EngineProcess
from pulumi_holdfast.rehearsal.engine.values import Properties, Value
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_client.errors import Cancellation
from pulumi_holdfast.rehearsal.kubernetes_provider import KubernetesProvider
from pulumi_holdfast.rehearsal.kubernetes_provider.apply import manager_for
from pulumi_holdfast.rehearsal.kubernetes_provider.helm import OWNER_LABEL, ChartMirror, Helm, revisions
from pulumi_holdfast.rehearsal.kubernetes_provider.inputs import to_object
from pulumi_holdfast.rehearsal.kubernetes_provider.objects import Objects
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import (
    RELEASE,
    Naming,
    Operation,
    ProviderSettings,
    ResourceState,
)
from pulumi_holdfast.rehearsal.kubernetes_provider.releases import Releases
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.clusters.control_plane import CHECKOUT

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

NOWHERE: Properties = {"no-node": "has-this"}


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
    selector = "nodeSelector.no-node=has-this"
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
        timeout_seconds=180,
        condition=_runs_nowhere,
        what="helm is at work",
    )
    process.kill()
    process.wait()


def _runs_nowhere(found: Json | None) -> bool:
    spec = mapping(mapping(mapping((found or {}).get("spec")).get("template")).get("spec"))
    return spec.get("nodeSelector") == NOWHERE


CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
CRD = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"


def config_map(namespace: str, value: str = "1") -> Properties:
    return {"metadata": {"name": "conf", "namespace": namespace}, "data": {"k": value}}


def deployment(namespace: str, *, selector: Properties | None = None, image: str = "a") -> Properties:
    container: Properties = {"name": "c", "image": image}
    return {
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container], "nodeSelector": selector or {}},
            },
        },
    }


def widget_definition(group: str) -> Properties:
    return {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x_kubernetes_preserve_unknown_fields": True}
                    },
                }
            ],
        },
    }


def as_object(inputs: Properties) -> Json:
    """A ConfigMap's inputs as the object others would apply."""
    return {"apiVersion": "v1", "kind": "ConfigMap", **to_object(inputs)}


WAIT_SECONDS = 60.0


@dataclass(kw_only=True)
class Resource:
    """One resource of a stack, as the engine knows it between operations."""

    client: KubeClient
    token: str
    name: str = "one"
    resources: Objects | Releases = field(default_factory=lambda: Objects(faults=Faults()))
    settings: ProviderSettings = field(default_factory=ProviderSettings)
    timeout: float = WAIT_SECONDS
    cancellation: Cancellation = field(default_factory=Cancellation)
    id: str = ""
    inputs: Properties = field(default_factory=dict[str, Value])
    outputs: Properties = field(default_factory=dict[str, Value])

    @property
    def operation(self) -> Operation:
        """A call about this resource."""
        return Operation(
            urn=f"urn:pulumi:test::test::{self.token}::{self.name}",
            token=self.token,
            client=self.client.under(self.cancellation),
            cancellation=self.cancellation,
            settings=self.settings,
            custom_timeout=self.timeout,
        )

    def check(self, inputs: Properties) -> Properties:
        """Return the inputs, complete."""
        return self.resources.check(self.operation, inputs, self.inputs, Naming(logical_name=self.name))

    def plan(self, inputs: Properties) -> Properties:
        """Return the outputs a create or update would give."""
        checked = self.check(inputs)
        if self.id:
            return self.resources.plan_update(self.operation, checked, self.outputs)
        return self.resources.plan_create(self.operation, checked)

    def create(self, inputs: Properties) -> ResourceState:
        """Create it."""
        return self._keep(self.resources.create(self.operation, self.check(inputs)))

    def update(self, inputs: Properties, ignored: Sequence[str] = ()) -> ResourceState:
        """Update it."""
        checked = self.check(inputs)
        return self._keep(self.resources.update(self.operation, self.id, checked, self.outputs, ignored))

    def refresh(self) -> ResourceState:
        """Read it back."""
        return self._keep(self.resources.read(self.operation, self.id, self.outputs, self.inputs))

    def changed_paths(self, inputs: Properties) -> set[str]:
        """Return where new inputs differ from those applied last."""
        checked = self.check(inputs)
        return set(self.resources.diff(self.operation, self.outputs, self.inputs, checked).detailedDiff)

    def delete(self) -> None:
        """Delete it."""
        self.resources.remove(self.operation, self.id, self.outputs)

    def _keep(self, outcome: ResourceState) -> ResourceState:
        self.id, self.inputs, self.outputs = outcome.id, outcome.inputs, outcome.outputs
        return outcome


TOOLS = CHECKOUT / ".tools" / "bin"
Program = Callable[[], None]


def _nothing() -> None:
    """Register no resource."""


@dataclass(frozen=True, kw_only=True)
class KubernetesProviderSimulator:
    """Plays the one provider of a stack on the control plane of a kubeconfig."""

    kubeconfig: Path
    faults: Faults

    def provider(self, package: str) -> KubernetesProvider:
        """Return the simulated provider."""
        assert package == "kubernetes", "the stack has no other provider"
        charts = ChartMirror(TOOLS.parent / "charts")
        return KubernetesProvider(self.kubeconfig, TOOLS / "helm", charts, self.faults)

    def made(self, operation: PendingOperation) -> str | None:
        """Return the id of the object an interrupted create did make."""
        return self.provider("kubernetes").made(operation.urn, operation.type, operation.inputs)


@dataclass(frozen=True, kw_only=True)
class KubernetesStack:
    """A stack whose state is in `workspace`; each command is a run of its own, as a user's would be."""

    name: str
    workspace: Workspace
    kubeconfig: Path
    process: EngineProcess = field(default_factory=EngineProcess)

    def preview(self, program: Program) -> Mapping[str, int]:
        """Return how many resources `up` would create, update and so on."""
        return _changes(self._run(program, Faults(), lambda rehearsal: rehearsal.preview()))

    def up(self, program: Program, *, faults: Faults | None = None) -> Mapping[str, int]:
        """Bring the stack up and return how many resources were created, updated and so on."""
        return _changes(self._run(program, faults or Faults(), lambda rehearsal: rehearsal.up()))

    def refresh(self) -> Mapping[str, int]:
        """Read everything back and return how many resources had changed."""
        return _changes(self._run(_nothing, Faults(), lambda rehearsal: rehearsal.refresh()))

    def destroy(self) -> Mapping[str, int]:
        """Delete everything and return how many resources were deleted."""
        return _changes(self._run(_nothing, Faults(), lambda rehearsal: rehearsal.destroy()))

    def state(self) -> str:
        """Return the stack's state as it is on disk."""
        return EngineFolder.of(self.name, self.workspace).checkpoint("test", self.name).read_text()

    def _run(
        self, program: Program, faults: Faults, command: Callable[[Rehearsal], CommandOutcome]
    ) -> CommandOutcome:
        subject = Subject(
            program=program,
            project={"name": "test", "runtime": "python"},
            settings={"config": {}},
            packages=("kubernetes",),
        )
        providers = KubernetesProviderSimulator(kubeconfig=self.kubeconfig, faults=faults)
        with Rehearsal.open(
            self.name, self.workspace, subject=subject, providers=providers, process=self.process
        ) as rehearsal:
            return command(rehearsal)


def _changes(outcome: CommandOutcome) -> Mapping[str, int]:
    return {operation: count for operation, count in outcome.changes.items() if operation != "same"}
