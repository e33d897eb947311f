"""A real control plane with JobSet, KubeRay and Karpenter in it, and the pools of a ladder."""

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pulumi_holdfast.config import versions
from pulumi_holdfast.controller.jobs.kinds import KINDS, job_of_child, job_of_pod
from pulumi_holdfast.controller.jobs.observation import Observation
from pulumi_holdfast.controller.jobs.pod_history import PodHistory, with_pod
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey, Snapshot
from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.kubernetes.admission.rules import karpenter_rules
from pulumi_holdfast.kubernetes.karpenter_pool import KWOK, node_pool_spec
from pulumi_holdfast.kubernetes.operators.job_operators import jobset_values, kuberay_values
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    ARCH,
    CAPACITY_TYPE,
    CONTROLLER_NAMESPACE,
    ON_DEMAND,
    OS,
    POOL,
    RESERVATION_NAMESPACE,
    RESERVATION_PRIORITY,
    RESERVATION_PRIORITY_CLASS,
    SYSTEM,
    SYSTEM_VALUE,
    TRAINING,
    TRAINING_VALUE,
    ZONE,
    CapacityType,
)
from pulumi_holdfast.ladder.machines import LOCAL_ZONES, machine_catalogue
from pulumi_holdfast.ladder.pools import Pool, weights
from pulumi_holdfast.ladder.taints import SYSTEM as SYSTEM_TAINT
from pulumi_holdfast.local.karpenter import (
    MARKET,
    MARKET_FILE,
    fingerprint,
    instance_types_file,
    kwok_karpenter_values,
)
from pulumi_holdfast.rehearsal.errors import Cancellation, KubeCancelled
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.clusters.admission import admission_objects, make_namespace, wait_until_enforced
from tests.support.clusters.control_plane import define_fallback_policies
from tests.support.clusters.controller_rights import controller_kubeconfig, limit_controller
from tests.support.clusters.operators import OWN_CHARTS, STACK, OperatorCluster, bare_operator_cluster
from tests.support.json_objects import obj, objects

WATCH_SECONDS = 180.0


class Looker:
    """Looks at one job, and remembers what it saw of its pods."""

    def __init__(self, client: KubeClient, kind: str, name: str) -> None:
        self.kind = KINDS[kind]
        self.key = JobKey(kind, NAMESPACE, name)
        self._client = client
        self._memory = PodHistory()
        self._lock = threading.Lock()

    def job(self) -> Json:
        """The job as it is."""
        found = self._client.get(self.kind.api_version, self.kind.kind, self.key.name, NAMESPACE)
        assert found is not None, f"{self.key.name} is there"
        return found

    def snapshot(self) -> Snapshot:
        """The job with everything around it."""
        client = self._client
        children = [
            *client.list("batch/v1", "Job", namespace=NAMESPACE),
            *client.list("ray.io/v1", "RayCluster", namespace=NAMESPACE),
        ]
        claims = client.list("karpenter.sh/v1", "NodeClaim")
        return Snapshot(
            job=self.job(),
            now=datetime.now(UTC),
            pods=tuple(
                pod for pod in client.list("v1", "Pod", namespace=NAMESPACE) if job_of_pod(pod) == self.key
            ),
            children=tuple(child for child in children if job_of_child(child) == self.key),
            nodes=_by_name(client.list("v1", "Node")),
            claims={str(obj(claim.get("status")).get("nodeName")): claim for claim in claims},
        )

    def look(self) -> Observation:
        """What the ladder would decide by now."""
        snapshot = self.snapshot()
        with self._lock:
            seen, self._memory = self.kind.observe(snapshot, self._memory)
        return seen

    def wait(self, condition: Callable[[Observation], bool], what: str) -> Observation:
        """Look until a condition holds."""
        deadline = time.monotonic() + WATCH_SECONDS
        while not condition(seen := self.look()):
            assert time.monotonic() < deadline, f"{what}: {seen}"
            threading.Event().wait(0.1)
        return seen

    def write(self, patch_of: Callable[[Json], Json]) -> None:
        """Write a patch that names the version it was made from; make it again if the operator wrote first."""
        while True:
            try:
                self.patch(patch_of(self.job()))
                return
            except ApiError as error:
                if not error.is_conflict:
                    raise

    def patch(self, patch: Json) -> Json:
        """Write to the job."""
        return self._client.merge_patch(
            self.kind.api_version, self.kind.kind, self.key.name, patch, namespace=NAMESPACE
        )

    def delete_outdated_children(self) -> None:
        """Delete the child Jobs that were made from another template."""
        for child in self.kind.outdated_children(self.snapshot()):
            name = str(obj(child["metadata"])["name"])
            self._client.delete("batch/v1", "Job", name, namespace=NAMESPACE, propagation="Background")

    @contextmanager
    def watching(self) -> Generator[None]:
        """Take in every event of the job's pods for the length of the block."""
        cancellation = Cancellation()
        begun = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(cancellation, begun), daemon=True)
        watcher.start()
        begun.wait(WATCH_SECONDS)
        try:
            yield
        finally:
            cancellation.cancel()
            watcher.join()

    def _watch(self, cancellation: Cancellation, begun: threading.Event) -> None:
        client = self._client.under(cancellation)
        try:
            for what, pod in client.watch(
                "v1", "Pod", namespace=NAMESPACE, timeout_seconds=10 * WATCH_SECONDS
            ):
                begun.set()
                if job_of_pod(pod) == self.key:
                    with self._lock:
                        self._memory = with_pod(
                            self._memory, pod, datetime.now(UTC), is_deleted=what == "DELETED"
                        )
        except KubeCancelled:
            begun.set()


def _by_name(nodes: list[Json]) -> Mapping[str, Json]:
    return {str(obj(node["metadata"])["name"]): node for node in nodes}


NAMESPACE: Final = "tabular"

# Its default: a pod that asks for nothing must not wait for a large one.
MACHINES: Final = ("m7i.xlarge", "m7i.4xlarge")
ON_CPU: Final = Pool(
    name="cpu", capacity=CapacityType.ON_DEMAND, has_gpus=False, max_nodes=20, is_default=True
)
SPOT_A: Final = Pool(name="spot-a", capacity=CapacityType.SPOT, has_gpus=False, max_nodes=8)
SPOT_B: Final = Pool(name="spot-b", capacity=CapacityType.SPOT, has_gpus=False, max_nodes=8)
POOLS: Final = (ON_CPU, SPOT_A, SPOT_B)


@dataclass(frozen=True, kw_only=True)
class LadderCluster:
    """A cluster whose pools are `spot-a`, `spot-b` and, on-demand, `cpu`; jobs run in the namespace `tabular`."""

    client: KubeClient
    workspace: Workspace
    stack: str = STACK

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.workspace.kubeconfig(self.stack)

    @property
    def controller_kubeconfig(self) -> Path:
        """A kubeconfig of the controller's service account."""
        return controller_kubeconfig(self.client, self.kubeconfig)


@contextmanager
def ladder_cluster(folder: Path) -> Generator[LadderCluster]:
    """The cluster, its operators ready, for the length of the block."""
    with bare_operator_cluster(folder) as charts:
        charts.apply(system_node("system-0"))
        _install_operators(charts)
        _make_training_namespace(charts.client)
        limit_controller(charts.client)
        charts.apply(*(obj for pool in POOLS for obj in pool_objects(pool)))
        yield LadderCluster(client=charts.client, workspace=charts.workspace)


def pool_objects(pool: Pool) -> tuple[Json, Json]:
    """The node class and the NodePool of a pool."""
    catalogue = machine_catalogue("local")
    machines = [catalogue[name] for name in MACHINES]
    return (
        {"apiVersion": KWOK.api_version, "kind": KWOK.kind, "metadata": {"name": pool.name}, "spec": {}},
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": pool.name},
            "spec": node_pool_spec(pool, machines, KWOK, pool.name, weights(POOLS).get(pool.name, 1)),
        },
    )


def _install_operators(charts: OperatorCluster) -> None:
    for release, namespace, values in (
        ("jobset", "jobset-system", jobset_values(versions.JOBSET, None, 1)),
        ("kuberay", "kuberay-system", kuberay_values(versions.KUBERAY, None, 1)),
    ):
        charts.install(f"{release}-crds", OWN_CHARTS / f"{release}-crds", namespace)
        chart = "kuberay-operator" if release == "kuberay" else release
        charts.install(chart, charts.workspace.charts_dir / chart, namespace, values)
    install_karpenter(charts)


def install_karpenter(charts: OperatorCluster, settings: Json | None = None) -> None:
    """Install Karpenter, which sells the machines of the local catalogue; `settings` are further ones of its chart."""
    charts.install("karpenter-crds", OWN_CHARTS / "karpenter-kwok-crds", "karpenter")
    market = instance_types_file(machine_catalogue("local").values(), LOCAL_ZONES)
    charts.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": MARKET, "namespace": "karpenter"},
            "data": {MARKET_FILE: market},
        }
    )
    values = kwok_karpenter_values(versions.KARPENTER, fingerprint(market))
    values = {**values, "settings": {**obj(values["settings"]), **(settings or {})}}
    charts.install("karpenter", charts.workspace.charts_dir / "karpenter-kwok", "karpenter", values)


def _make_training_namespace(client: KubeClient) -> None:
    define_fallback_policies(client)
    for manifest in admission_objects(karpenter_rules(POOLS)):
        client.apply(manifest, field_manager="test")
    make_namespace(client, NAMESPACE, {TRAINING: TRAINING_VALUE})
    for name in (CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE):
        make_namespace(client, name, {})
    client.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": RESERVATION_PRIORITY_CLASS},
            "value": RESERVATION_PRIORITY,
        },
        field_manager="test",
    )
    wait_until_enforced(client, _is_tolerated)


def _is_tolerated(client: KubeClient) -> bool:
    """Whether a pod that selects a spot pool is given its toleration: the first job's pods must not come before."""
    asking: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks", "namespace": NAMESPACE},
        "spec": {"nodeSelector": {POOL: SPOT_A.name}, "containers": [{"name": "asks", "image": "asks"}]},
    }
    admitted = obj(client.apply(asking, field_manager="test", dry_run=True)["spec"])
    return any(each.get("key") == CAPACITY_TYPE for each in objects(admitted.get("tolerations")))


def system_node(name: str) -> Json:
    """A node for operators."""
    capacity: Json = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                ARCH: "amd64",
                OS: "linux",
                CAPACITY_TYPE: ON_DEMAND,
                SYSTEM: SYSTEM_VALUE,
                ZONE: LOCAL_ZONES[0],
            },
        },
        "spec": {"taints": [SYSTEM_TAINT.as_taint()]},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
