"""Where the real scheduler places placeholders, it places the pods of their job."""

from collections.abc import Generator, Mapping
from typing import Final

import pytest

from pulumi_holdfast.controller.jobs.pod_shapes import REQUIRED, placement_problem
from pulumi_holdfast.controller.jobs.pod_templates import shape_of, with_pool
from pulumi_holdfast.controller.jobs.reservations import (
    PlaceholderRequest,
    placeholders,
    release_patch,
    reserve_patch,
)
from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    RESERVATION_NAMESPACE,
    RESERVATION_PRIORITY,
    RESERVATION_PRIORITY_CLASS,
    ZONE,
)
from tests.support.clusters.reconciler import NAMESPACE, LoopCluster, simulated_node, wait_until
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster

ZONED: Final = "zoned"
NODES: Final[Mapping[str, str]] = {f"{ZONED}-{zone}{number}": zone for zone in "abc" for number in range(2)}
UID: Final = "6f2c2f0e-0000-4000-8000-000000000001"
LABELS: Final[Mapping[str, str]] = {"app": "walker"}
OWN: Final[Json] = {"topologyKey": ZONE, "labelSelector": {"matchLabels": dict(LABELS)}}
NOT_A: Final[Json] = {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["a"]}]}

#: What places a gang, the number of its pods, of which a node holds one, and the number of zones that they are in.
GANGS: Final[Mapping[str, tuple[Json, int, int]]] = {
    "a selector for a zone": ({"nodeSelector": {ZONE: "b"}}, 2, 1),
    "a node affinity": ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [NOT_A]}}}}, 4, 2),
    "an affinity among its pods": ({"affinity": {"podAffinity": {REQUIRED: [OWN]}}}, 2, 1),
    "an anti-affinity among its pods": ({"affinity": {"podAntiAffinity": {REQUIRED: [OWN]}}}, 3, 3),
    "a spread over zones": (
        {"topologySpreadConstraints": [{**OWN, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
        3,
        3,
    ),
}


@pytest.fixture(scope="module")
def zoned(small_cluster: LoopCluster) -> Generator[LoopCluster]:
    """The cluster with two nodes in each of three zones, in a pool of their own."""
    for name, zone in NODES.items():
        node = simulated_node(name, ZONED)
        metadata = obj(node["metadata"])
        labels = {**obj(metadata["labels"]), ZONE: zone}
        small_cluster.apply({**node, "metadata": {**metadata, "labels": labels}})
    small_cluster.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": RESERVATION_PRIORITY_CLASS},
            "value": RESERVATION_PRIORITY,
        }
    )
    yield small_cluster
    for name in NODES:
        small_cluster.client.delete("v1", "Node", name)


def nodes_of(cluster: LoopCluster, namespace: str, names: list[str]) -> list[str]:
    """The nodes of these pods, empty for one that has none."""
    found = [cluster.client.get("v1", "Pod", name, namespace) or {} for name in names]
    return [str(obj(pod.get("spec")).get("nodeName") or "") for pod in found]


def create_and_wait(cluster: LoopCluster, namespace: str, pods: list[Json], what: str) -> list[str]:
    """Create pods, wait until each has a node, and return the nodes."""
    cluster.apply(*pods)
    names = [name_of(pod) for pod in pods]
    wait_until(lambda: all(nodes_of(cluster, namespace, names)), f"{what} have nodes")
    return nodes_of(cluster, namespace, names)


def delete(cluster: LoopCluster, namespace: str, pods: list[Json]) -> None:
    for pod in pods:
        cluster.client.delete("v1", "Pod", name_of(pod), namespace=namespace, grace_seconds=0)
    names = {name_of(pod) for pod in pods}
    wait_until(
        lambda: not names & {name_of(p) for p in cluster.client.list("v1", "Pod", namespace=namespace)},
        "the pods are gone",
    )


@pytest.mark.parametrize("placed_by", GANGS)
def test_a_gang_fits_the_nodes_that_were_reserved_for_it(zoned: LoopCluster, placed_by: str) -> None:
    placement, count, zones = GANGS[placed_by]
    container: Json = {"name": "train", "image": "train", "resources": {"requests": {"cpu": "3"}}}
    spec: Json = {**placement, "containers": [container]}
    shape = shape_of(spec, count, LABELS)
    assert placement_problem([shape.placement]) is None
    request = PlaceholderRequest(
        uid=UID, job="JobSet vision/walker", pool=ZONED, shapes=(shape,), taints=(), image="pause"
    )
    holds = list(placeholders(request))
    reserved = create_and_wait(zoned, RESERVATION_NAMESPACE, holds, "the placeholders")
    assert len({NODES[node] for node in reserved}) == zones
    for name in reserved:
        patch = reserve_patch(zoned.client.get("v1", "Node", name) or {}, UID)
        assert patch is not None
        zoned.client.merge_patch("v1", "Node", name, patch)
    delete(zoned, RESERVATION_NAMESPACE, holds)
    # The other nodes are full. Pods fill them, since the scheduler sees pods in the order in which they were created.
    fillers: list[Json] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"filler-{node}", "namespace": NAMESPACE},
            "spec": {"nodeName": node, "containers": [container]},
        }
        for node in sorted(NODES.keys() - set(reserved))
    ]
    gang: list[Json] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"walker-{number}", "namespace": NAMESPACE, "labels": dict(LABELS)},
            "spec": with_pool(spec, ZONED, reserved_for_uid=UID),
        }
        for number in range(count)
    ]
    try:
        zoned.apply(*fillers)
        taken = create_and_wait(zoned, NAMESPACE, gang, "the job's pods")
        assert sorted(taken) == sorted(reserved)
    finally:
        delete(zoned, NAMESPACE, [*gang, *fillers])
        for name in reserved:
            release = release_patch(zoned.client.get("v1", "Node", name) or {})
            if release is not None:
                zoned.client.merge_patch("v1", "Node", name, release)
