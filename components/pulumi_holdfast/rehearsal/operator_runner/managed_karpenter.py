"""Runs the Karpenter of AKS node auto-provisioning, which is part of the managed control plane and has no pod.

It runs, and its CRDs exist, while the Azure simulator has a cluster with node auto-provisioning. The program is the same
as for the Karpenter pods of other clouds.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import yaml

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.labels import AKS_CILIUM, AKS_DATAPLANE
from pulumi_holdfast.ladder.taints import CILIUM_AGENT_NOT_READY
from pulumi_holdfast.rehearsal.clouds.azure.cluster import provisioned_cluster
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.control_plane.processes import free_ports
from pulumi_holdfast.rehearsal.errors import FAILURES
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner.instance_types import azure_instance_types
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import RunnerLayout
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import CannotRunError
from pulumi_holdfast.rehearsal.operator_runner.process import (
    Command,
    SupervisedProcess,
    delay_seconds,
    failures_after,
)

TOOL: Final = "karpenter-kwok"
FIELD_MANAGER: Final = "aks"
# In the simulator, a program creates a NodePool right after its cluster.
_PAUSE_SECONDS: Final = 0.3
_GRACE_SECONDS: Final = 10.0
# The values that a chart or a pod would set.
_VARIABLES: Final[Mapping[str, str]] = {
    "SYSTEM_NAMESPACE": "kube-system",
    "KUBERNETES_MIN_VERSION": "1.19.0-0",
    "KARPENTER_SERVICE": "karpenter",
    "DISABLE_LEADER_ELECTION": "true",
    "MEMORY_LIMIT": "1073741824",
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ManagedKarpenter:
    """Runs Karpenter while the simulated cloud has a cluster with node auto-provisioning.

    `find_program` returns the file of the program; `crds` is the folder with its CRDs; `layout` has the kubeconfig of
    the cluster and the paths of files.
    """

    cloud: CloudState
    layout: RunnerLayout
    find_program: Callable[[str], Path]
    crds: Path

    async def run(self) -> None:
        """Run Karpenter whenever the cluster exists, until canceled."""
        failures = 0
        while True:
            begin = asyncio.get_running_loop().time()
            reason = await self._run_once()
            if not reason:
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            ran = asyncio.get_running_loop().time() - begin
            failures = failures_after(failures, ran_seconds=ran)
            seconds = delay_seconds(failures)
            _log.warning("the Karpenter of AKS: %s; next attempt in %.0f s", reason, seconds)
            await asyncio.sleep(seconds)

    async def _run_once(self) -> str:
        """Run Karpenter while the cluster exists; returns the reason if it ends although the cluster exists."""
        try:
            cluster = await asyncio.to_thread(self._cluster)
            return "" if cluster is None else await self._run_for(cluster)
        except (CannotRunError, *FAILURES, OSError) as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - without Karpenter no pod gets a node: log the error and retry
            _log.exception("cannot run the Karpenter of AKS")
            return repr(error)

    def _cluster(self) -> CloudObject | None:
        return provisioned_cluster(self.cloud)

    async def _run_for(self, cluster: CloudObject) -> str:
        """Run Karpenter while a cluster exists; returns the reason for its end, "" if the cluster was deleted."""
        await asyncio.to_thread(self._define_kinds)
        process = await SupervisedProcess.start(self._command(cluster))
        _log.info("the Karpenter of AKS runs for %s", cluster.id)
        ended = asyncio.create_task(process.ended())
        client = KubeClient.from_kubeconfig(self.layout.kubeconfig)
        try:
            while not ended.done():
                if _identity(await asyncio.to_thread(self._cluster)) != _identity(cluster):
                    return ""
                await asyncio.to_thread(start_cilium_agents, client)
                await asyncio.wait([ended], timeout=_PAUSE_SECONDS)
            return f"it exited with code {ended.result()}"
        finally:
            ended.cancel()
            client.close()
            await process.end(grace_seconds=_GRACE_SECONDS)

    def _command(self, cluster: CloudObject) -> Command:
        folder = self.layout.folder / "managed-karpenter"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        market = folder / "instance-types.json"
        market.write_text(azure_instance_types(cluster), encoding="utf-8")
        metrics, health = free_ports(2)
        return Command(
            program=self.find_program(TOOL),
            args=(),
            variables={
                **_VARIABLES,
                "HOME": str(folder),
                "KUBECONFIG": str(self.layout.kubeconfig),
                "KUBELET_KUBECONFIG": str(self.layout.kubeconfig),
                "INSTANCE_TYPES_FILE_PATH": str(market),
                "METRICS_PORT": str(metrics),
                "HEALTH_PROBE_PORT": str(health),
            },
            folder=self.layout.folder,
            log=self.layout.logs / f"{TOOL}.log",
        )

    def _define_kinds(self) -> None:
        definitions = _definitions(self.crds)
        with closing(KubeClient.from_kubeconfig(self.layout.kubeconfig)) as client:
            for definition in definitions:
                client.apply(mapping(definition), field_manager=FIELD_MANAGER, force=True)
            for document in (*_cilium_policy(), _cilium_agents()):
                client.apply(document, field_manager=FIELD_MANAGER, force=True)


#: How many seconds after its node Cilium's agent is ready at the earliest, in an annotation of the node or of its NodePool's
#: template.
CILIUM_SECONDS: Final = "holdfast.dev/cilium-seconds"

_CILIUM: Final = "aks-cilium-agent-not-ready"
_AGENTS: Final = "k8s-app=cilium"


def _cilium_agents() -> Json:
    """The DaemonSet of Cilium's agent, which runs on each node of Karpenter.

    Karpenter counts what an agent requests only if the NodePool names the label by which the DaemonSet selects nodes.
    """
    key, _, value = _AGENTS.partition("=")
    resources: Json = {"requests": {"cpu": "100m", "memory": "300Mi"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": value, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {key: value}},
            "template": {
                "metadata": {"labels": {key: value}},
                "spec": {
                    "nodeSelector": {AKS_DATAPLANE: AKS_CILIUM},
                    "tolerations": [{"operator": "Exists"}],
                    "priorityClassName": "system-node-critical",
                    "containers": [{"name": "cilium-agent", "image": "cilium", "resources": resources}],
                },
            },
        },
    }


def _cilium_policy() -> Sequence[Json]:
    """The admission policy that starts Karpenter's nodes with label and taint of Cilium, whether their NodePool names them or not.

    In AKS, the kubelet registers with them. A policy leaves no time in which the scheduler sees the node without the taint.
    """
    taint = CILIUM_AGENT_NOT_READY
    fields = f'key: "{taint.key}", value: "{taint.value}", effect: "{taint.effect}"'
    has_taint = f'object.spec.taints.exists(taint, taint.key == "{taint.key}")'
    api = "admissionregistration.k8s.io/v1"
    nodes: Json = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nodes"]}
    spec: Json = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [nodes]},
        "matchConditions": [
            {
                "name": "from-karpenter",
                "expression": '"karpenter.sh/nodepool" in object.metadata.?labels.orValue({})',
            }
        ],
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
            for expression in (
                f'{has_taint} ? [] : [JSONPatch{{op: "add", path: "/spec/taints/-", value: Object.spec.taints{{{fields}}}}}]',
                f'[JSONPatch{{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("{AKS_DATAPLANE}"), value: "{AKS_CILIUM}"}}]',
            )
        ],
    }
    return (
        {"apiVersion": api, "kind": "MutatingAdmissionPolicy", "metadata": {"name": _CILIUM}, "spec": spec},
        {
            "apiVersion": api,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": _CILIUM},
            "spec": {"policyName": _CILIUM},
        },
    )


def start_cilium_agents(client: KubeClient) -> None:
    """Remove the taint of nodes on which Cilium's agent was not ready, as the agent does when it is."""
    try:
        agents = client.list("v1", "Pod", namespace="kube-system", label_selector=_AGENTS)
        running = {
            str(mapping(agent.get("spec")).get("nodeName"))
            for agent in agents
            if mapping(agent.get("status")).get("phase") == "Running"
        }
        for node in client.list("v1", "Node"):
            taints = sequence(mapping(node.get("spec")).get("taints"))
            left = [taint for taint in taints if mapping(taint).get("key") != CILIUM_AGENT_NOT_READY.key]
            metadata = mapping(node.get("metadata"))
            has_agent = str(metadata.get("name")) in running
            if len(left) < len(taints) and has_agent and _has_waited(metadata):
                # The version, because Karpenter changes taints too.
                version = {"resourceVersion": metadata.get("resourceVersion")}
                patch: Json = {"metadata": version, "spec": {"taints": left}}
                client.merge_patch("v1", "Node", str(metadata.get("name")), patch)
    except ApiError as error:
        _log.info("an agent of Cilium tries again: %s", error)


def _has_waited(node: Json) -> bool:
    seconds = float(str(mapping(node.get("annotations")).get(CILIUM_SECONDS, 0)))
    started = datetime.fromisoformat(str(node["creationTimestamp"]))
    return datetime.now(UTC) - started >= timedelta(seconds=seconds)


def _identity(cluster: CloudObject | None) -> tuple[str, str] | None:
    return None if cluster is None else (cluster.id, cluster.digest)


def _definitions(folder: Path) -> Sequence["JsonValue"]:
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise CannotRunError(f"{folder} contains no CRDs; run `make tools`")
    texts = [file.read_text(encoding="utf-8") for file in files]
    return [document for text in texts for document in yaml.load_all(text, yaml.CSafeLoader)]
