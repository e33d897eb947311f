"""A control plane with JobSet, a node for each pool of a ladder, and processes of the fallback controller."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast
from urllib.error import URLError

from pulumi_holdfast.config import versions
from pulumi_holdfast.controller.jobs.kinds import KINDS, JobKind, job_of_pod, pod_selectors
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.kubernetes.fallback_policy import API_VERSION, KIND
from pulumi_holdfast.kubernetes.operators.job_operators import jobset_values, kuberay_values
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import (
    CAPACITY_TYPE,
    CONTROLLER_NAMESPACE,
    LADDER,
    LEASE,
    POOL,
    RESERVATION_NAMESPACE,
    SPOT,
    STATE,
    TRAINING,
    TRAINING_VALUE,
)
from pulumi_holdfast.rehearsal.control_plane import ControlPlane
from pulumi_holdfast.rehearsal.control_plane.processes import processes_in
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner import OperatorRunner
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.builders.gang_jobset import gang_jobset
from tests.support.builders.gang_rayjob import gang_rayjob
from tests.support.clusters.control_plane import CHECKOUT, define_fallback_policies, running_control_plane
from tests.support.clusters.controller_rights import controller_kubeconfig, limit_controller
from tests.support.clusters.operators import OWN_CHARTS, STACK, OperatorCluster
from tests.support.json_objects import obj, objects


class Replica:
    """A process of the controller; its log lines are JSON objects."""

    def __init__(
        self, kubeconfig: Path, folder: Path, *arguments: str, module: str = "pulumi_holdfast.controller"
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])
        self._log = folder / f"controller-{self._port}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", module, "--kubeconfig", str(kubeconfig)),
                    *("--address", "127.0.0.1", "--port", str(self._port), "--log-level", "debug"),
                    *arguments,
                ],
                cwd=CHECKOUT,
                stdout=log,
                stderr=log,
            )

    def log(self) -> list[Json]:
        """Every line it has logged."""
        lines = self._log.read_text().splitlines()
        return [cast("Json", json.loads(line)) for line in lines if line.startswith("{")]

    def log_end(self) -> str:
        """The last lines that it has logged, for a failed test."""
        return self._log.read_text()[-8000:]

    def says(self, words: str) -> bool:
        """Whether a log line has these words in its message."""
        return any(words in str(line["message"]) for line in self.log())

    def answers(self, path: str, *, seconds: float = 5) -> str | None:
        """What it serves, None where it refuses or does not answer in time."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=seconds) as answer:
                return cast("bytes", answer.read()).decode()
        except (URLError, OSError):
            return None

    def number(self, series: str) -> float:
        """What a metric says, 0 where it has not been counted yet. `series` with its labels."""
        lines = (self.answers("/metrics") or "").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == series)

    def leads(self) -> bool:
        """Whether it leads."""
        return self.number("holdfast_fallback_leader") == 1

    def wait(self, condition: Callable[[Replica], bool], what: str, *, seconds: float = 180) -> None:
        """Wait until something holds of it."""
        wait_until(lambda: condition(self), what, seconds=seconds)

    def wait_ready(self) -> Replica:
        """Wait until it has seen the cluster."""
        self.wait(lambda each: each.answers("/readyz") == "ok", "the controller is ready")
        return self

    def kill(self) -> None:
        """End it without notice."""
        self.process.kill()
        self.process.wait(30)

    def terminate(self) -> int:
        """Tell it to end, and return its exit code."""
        self.process.terminate()
        return self.process.wait(30)

    def freeze(self) -> None:
        """Stop it in its tracks."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.process.pid, signal.SIGCONT)

    def memory_mib(self) -> float:
        """What it holds in memory."""
        return self.number("process_resident_memory_bytes") / 2**20


@contextmanager
def replica(
    kubeconfig: Path, folder: Path, *arguments: str, module: str = "pulumi_holdfast.controller"
) -> Generator[Replica]:
    """A replica with these arguments for the length of the block."""
    started = Replica(kubeconfig, folder, *arguments, module=module)
    try:
        yield started
    except AssertionError as error:
        error.add_note(started.log_end())
        raise
    finally:
        if started.process.poll() is None:
            started.thaw()
            started.kill()


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 180) -> None:
    """Look until something holds."""
    for _ in _looks(seconds):
        if condition():
            return
    raise AssertionError(f"not so after {seconds:.0f} s: {what}")


def _looks(seconds: float) -> Iterator[None]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield
        time.sleep(0.05)


JOBSET: Final = "jobset.x-k8s.io/v1alpha2"
NAMESPACE: Final = "vision"
POOLS: Final = ("spot-a", "spot-b", "on-demand")
#: Begins the names of RayJobs; all other jobs are JobSets.
RAY: Final = "ray-"


def kind_of(name: str) -> JobKind:
    """The kind of a job, by its name."""
    return KINDS["RayJob" if name.startswith(RAY) else "JobSet"]


@dataclass(kw_only=True)
class LoopCluster:
    """The cluster; nodes of four pods each are in every pool."""

    client: KubeClient
    workspace: Workspace
    host: OperatorRunner
    kinds: Sequence[JobKind]

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig of the controller's service account."""
        return controller_kubeconfig(self.client, self.workspace.kubeconfig(STACK))

    @property
    def _control_plane(self) -> ControlPlane:
        return ControlPlane(STACK, self.workspace, report=lambda _: None)

    def kill_api_server(self) -> None:
        """End the API server without notice."""
        for each in processes_in(self._control_plane.layout.cluster_dir, ["kube-apiserver"]):
            each.process.kill()
            each.process.wait(timeout=10)

    def start_again(self) -> None:
        """Bring up what has died; the API server is at another address then."""
        self._control_plane.start()
        self.host.start()
        self.client.close()
        self.client = KubeClient.from_kubeconfig(self.workspace.kubeconfig(STACK))
        # A running controller reads the new address from its file.
        controller_kubeconfig(self.client, self.workspace.kubeconfig(STACK))

    def forget_leader(self) -> None:
        """Let the next candidate lead at once, as if the lease of a dead leader had run out."""
        self.client.delete("coordination.k8s.io/v1", "Lease", LEASE, namespace=CONTROLLER_NAMESPACE)

    def apply(self, *objects: Json) -> None:
        """Create or change objects."""
        for each in objects:
            self.client.apply(each, field_manager="test", force=True)

    def job(self, name: str, within: str = NAMESPACE) -> Json:
        """A job as it is."""
        kind = kind_of(name)
        return self.client.get(kind.api_version, kind.kind, name, within) or {}

    def change(self, name: str, patch: Json, *, subresource: str | None = None) -> None:
        """Merge a patch into a job."""
        kind = kind_of(name)
        self.client.merge_patch(
            kind.api_version, kind.kind, name, patch, namespace=NAMESPACE, subresource=subresource
        )

    def delete(self, name: str) -> None:
        """Delete a job."""
        kind = kind_of(name)
        self.client.delete(kind.api_version, kind.kind, name, namespace=NAMESPACE)

    def state(self, name: str) -> Json:
        """What is kept of a job, empty where nothing is."""
        text = obj(obj(self.job(name).get("metadata")).get("annotations")).get(STATE)
        return cast("Json", json.loads(text)) if isinstance(text, str) else {}

    def pods(self, name: str, within: str = NAMESPACE) -> list[Json]:
        """The pods of a job that have not ended."""
        key = JobKey(kind_of(name).kind, within, name)
        return [
            pod
            for labels in pod_selectors(key)
            for pod in self.client.list("v1", "Pod", namespace=within, label_selector=labels)
            if job_of_pod(pod) == key and obj(pod.get("status")).get("phase") not in {"Failed", "Succeeded"}
        ]

    def gang(self, name: str, within: str = NAMESPACE) -> list[Json]:
        """Those that its tier places: not a Ray head."""
        return [pod for pod in self.pods(name, within) if POOL in obj(obj(pod["spec"]).get("nodeSelector"))]

    def runs_on(self, name: str, pool: str, *, pods: int = 2, within: str = NAMESPACE) -> bool:
        """Whether the whole gang runs in a pool."""
        found = self.gang(name, within)
        running = [
            pod
            for pod in found
            if obj(pod["status"]).get("phase") == "Running"
            and str(obj(pod["spec"]).get("nodeName")).startswith(pool)
            and not obj(pod["metadata"]).get("deletionTimestamp")
        ]
        return len(running) == len(found) == pods

    def wait_on(
        self, name: str, pool: str, *, pods: int = 2, within: str = NAMESPACE, seconds: float = 180
    ) -> None:
        """Wait until the ladder knows that the whole gang runs in a pool."""

        def runs() -> bool:
            state = self.state(name) if within == NAMESPACE else {"phase": "Running", "pool": pool}
            is_known = state.get("phase") == "Running" and state.get("pool") == pool
            return is_known and self.runs_on(name, pool, pods=pods, within=within)

        try:
            wait_until(runs, f"{name} runs on {pool}", seconds=seconds)
        except AssertionError as error:
            children = self.client.list(
                "batch/v1", "Job", namespace=within, label_selector=f"jobset.sigs.k8s.io/jobset-name={name}"
            )
            events = [
                f"{obj(each['involvedObject']).get('kind')} {each['reason']}: {each.get('message')}"
                for each in self.client.list("v1", "Event", namespace=within)
                if str(obj(each["involvedObject"]).get("name")).startswith(name)
            ]
            kept = [
                self.state(name),
                self.said(name),
                self.job(name, within).get("status"),
                *children,
                *events,
            ]
            error.add_note("\n".join(map(str, kept)))
            raise

    def evict_one(self, name: str, within: str = NAMESPACE) -> None:
        """Evict a pod of a job's gang."""
        self.client.evict(within, str(obj(self.gang(name, within)[0]["metadata"])["name"]))

    def said(self, name: str) -> list[str]:
        """The reasons of the Events that the controller has written about a job, first to last."""
        events = [
            each
            for each in self.client.list("v1", "Event", namespace=NAMESPACE)
            if obj(each["involvedObject"]).get("name") == name
            and obj(each.get("source")).get("component") == "holdfast-fallback"
        ]
        return [str(each["reason"]) for each in sorted(events, key=lambda each: str(each["firstTimestamp"]))]

    def clear(self) -> None:
        """Delete every job and wait until their pods are gone."""
        for kind in self.kinds:
            for each in self.client.list(kind.api_version, kind.kind):
                metadata = obj(each["metadata"])
                namespace = str(metadata["namespace"])
                self.client.delete(kind.api_version, kind.kind, str(metadata["name"]), namespace=namespace)
        self.client.wait_list(
            "v1",
            "Pod",
            timeout_seconds=180,
            condition=lambda pods: not any(map(job_of_pod, pods)),
            what="the pods are gone",
        )


@contextmanager
def loop_cluster(folder: Path, *, nodes: int = 2, has_ray: bool = False) -> Generator[LoopCluster]:
    """The cluster, its operators ready, for the length of the block."""
    with running_control_plane(folder, STACK) as workspace:
        host = OperatorRunner(workspace, STACK, report=lambda _: None)
        client = KubeClient.from_kubeconfig(workspace.kubeconfig(STACK))
        charts = OperatorCluster(client=client, workspace=workspace)
        try:
            host.start()
            charts.apply(simulated_node("system-0", None))
            operators = [("jobset", "jobset", jobset_values(versions.JOBSET, None, 1))]
            if has_ray:
                operators.append(("kuberay", "kuberay-operator", kuberay_values(versions.KUBERAY, None, 1)))
            for name, chart, values in operators:
                charts.install(f"{name}-crds", OWN_CHARTS / f"{name}-crds", f"{name}-system")
                charts.install(chart, workspace.charts_dir / chart, f"{name}-system", values)
            define_fallback_policies(client)
            charts.apply(*(namespace(each) for each in (CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE)))
            charts.apply(namespace(NAMESPACE, training=True))
            limit_controller(client)
            charts.apply(
                *(simulated_node(f"{pool}-{number}", pool) for pool in POOLS for number in range(nodes))
            )
            kinds = [KINDS[kind] for kind in ("JobSet", *(["RayJob"] if has_ray else []))]
            yield LoopCluster(client=client, workspace=workspace, host=host, kinds=kinds)
        finally:
            host.stop()
            client.close()


def namespace(name: str, *, training: bool = False) -> Json:
    """A namespace."""
    labels: Json = {TRAINING: TRAINING_VALUE} if training else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def simulated_node(name: str, pool: str | None) -> Json:
    """A node with room for four pods of a CPU each; that of no pool is for operators."""
    capacity: Json = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    labels: Json = {
        "kubernetes.io/hostname": name,
        **({POOL: pool} if pool else {"holdfast.dev/system": "true"}),
        **({CAPACITY_TYPE: SPOT} if pool and pool.startswith(SPOT) else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": labels},
        "spec": {}
        if pool
        else {"taints": [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}]},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def policy(*tiers: Json, within: str = NAMESPACE, **options: str) -> Json:
    """A ladder; without tiers it leaves each spot pool after one failure."""
    usual: Sequence[Json] = ({"pool": "spot-a", "maxFailures": 1}, {"pool": "spot-b", "maxFailures": 1})
    *others, last = tiers or (*usual, {"pool": "on-demand"})
    # Longer than any test.
    listed = [*({"procurementTimeout": "2h", **each} for each in others), last]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": LADDER, "namespace": within},
        "spec": {"tiers": listed, **options},
    }


def jobset(
    name: str,
    *,
    pods: int = 2,
    pool: str = "spot-a",
    within: str = NAMESPACE,
    terminates_in: str = "0s",
    removed_in: str = "0s",
) -> Json:
    """A JobSet of a gang of pods of one CPU each, as admission would have made it.

    `terminates_in`: how long its pods take to terminate; `removed_in`: how long a terminated pod stays.
    """
    return gang_jobset(
        name,
        within,
        pods=pods,
        pool=pool,
        cpu="1",
        failure_policy={"maxRestarts": 20},
        pod={"terminationGracePeriodSeconds": 60},
        annotations={"holdfast.dev/terminates-in": terminates_in, "holdfast.dev/removed-in": removed_in},
    )


def with_pods(job: Json, **fields: JsonValue) -> Json:
    """A JobSet whose pods have these fields."""
    spec = obj(job["spec"])
    (first,) = objects(spec["replicatedJobs"])
    template = obj(first["template"])
    child = obj(template["spec"])
    pods = obj(child["template"])
    changed: Json = {**child, "template": {**pods, "spec": {**obj(pods["spec"]), **fields}}}
    return {**job, "spec": {**spec, "replicatedJobs": [{**first, "template": {**template, "spec": changed}}]}}


def rayjob(name: str, *, pool: str = "spot-a") -> Json:
    """A RayJob of two workers of one CPU each, as admission would have made it."""
    return gang_rayjob(name, NAMESPACE, pods=2, pool=pool, cpu="1", pod={"terminationGracePeriodSeconds": 60})


def job_of_kind(name: str, *, pool: str = "spot-a") -> Json:
    """A RayJob or a JobSet of two pods, by its name."""
    return rayjob(name, pool=pool) if name.startswith(RAY) else jobset(name, pool=pool)
