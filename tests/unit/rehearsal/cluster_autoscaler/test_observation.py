"""What the autoscaler sees of a cluster is what is there."""

from datetime import UTC, datetime
from fractions import Fraction

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.reachability.affinity import Requirement
from pulumi_holdfast.ladder.taints import Taint, Toleration
from pulumi_holdfast.rehearsal.clouds.gcp.nodes import template_of
from pulumi_holdfast.rehearsal.clouds.machines import Instance
from pulumi_holdfast.rehearsal.clouds.state import Inventory
from pulumi_holdfast.rehearsal.cluster_autoscaler.node_groups import NodeGroup
from pulumi_holdfast.rehearsal.cluster_autoscaler.observation import (
    SHUTTING_DOWN,
    class_priorities,
    empty_nodes,
    node_infos,
    options,
    pending,
    upcoming,
)
from pulumi_holdfast.rehearsal.cluster_autoscaler.scale_up import (
    is_daemons,
    moment,
    needs_of,
    node_of,
    requests_of,
)
from tests.support.builders.autoscaling_objects import NOW, node, node_pool, pod


def test_pods_that_wait_come_in_the_order_they_began_to() -> None:
    later = {"conditions": [{**_waits, "lastTransitionTime": "2026-11-21T09:00:05Z"}]}
    found = pending([pod("late", status=later), pod("early"), pod("runs", nodeName="n")])
    assert [each.name for each in found] == ["early", "late"]


_waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def test_a_nodes_room_is_what_its_pods_leave() -> None:
    ended = pod("ended", nodeName="n", status={"phase": "Succeeded"})
    (found,) = node_infos([node()], [pod("a", nodeName="n"), pod("b", nodeName="n"), ended])
    assert found.free["cpu"] == Fraction(292, 100)
    assert found.free["pods"] == 108
    assert found.since == datetime(2026, 11, 21, 8, tzinfo=UTC)
    daemon = {**pod("d", nodeName="b"), "metadata": {"name": "d", "ownerReferences": [{"kind": "DaemonSet"}]}}
    found = empty_nodes([node("a"), node("b"), node("c")], [pod("p", nodeName="a"), daemon])
    assert found == {"b", "c"}
    assert is_daemons({"metadata": {"ownerReferences": [{"kind": "DaemonSet"}]}})
    assert not is_daemons({"metadata": {"ownerReferences": [{"kind": "Job"}]}})


def test_nodes_that_start_or_are_bought_count_and_drained_ones_do_not() -> None:
    drained = node("drained", spec={"unschedulable": True})
    ending = node("ending", conditions={"Ready": SHUTTING_DOWN})
    assert [each.name for each in node_infos([drained, ending, node("stays")], [])] == ["stays"]
    taints = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    (found,) = node_infos([node(spec={"taints": taints})], [])
    assert found.taints == (), "a second one would be bought beside it"
    pool = node_pool()
    machines = tuple(Instance(name=name, zone="europe-west4-a") for name in ("there", "coming"))
    seen = NodeGroup(pool=pool, template=template_of(pool, Inventory([], {})), instances=machines)
    (found,) = upcoming([seen], [node("there")])
    assert found.name == "coming", "a second one would be bought for the same pods"
    assert found.since is None
    assert found.free["cpu"] == Fraction(392, 100)


def test_each_pool_is_on_offer_in_each_of_its_zones() -> None:
    pool = node_pool(autoscaling={"totalMaxNodeCount": 3, "locationPolicy": "ANY"})
    template = template_of(pool, Inventory([], {}))
    seen = NodeGroup(pool=pool, template=template, instances=(Instance(name="i", zone="europe-west4-b"),))
    first, second = options([seen], {(pool.id, "europe-west4-a")}, {"cpu": 1})
    assert (first.zone, second.zone) == ("europe-west4-a", "europe-west4-b")
    assert (first.nodes, second.nodes, first.spare) == (0, 1, 2)
    assert (first.is_in_backoff, second.is_in_backoff) == (True, False)
    assert not first.spreads
    assert first.priority == 1
    assert first.room.labels["topology.kubernetes.io/zone"] == "europe-west4-a"
    assert first.room.free["cpu"] == Fraction(392, 100)


def test_a_class_lists_its_pools_in_the_order_of_its_rules() -> None:
    rules = [{"nodepools": ["a", "b"]}, {"machineFamily": "n2"}, {"nodepools": ["c"]}]
    assert class_priorities([{"spec": {"priorities": rules}}]) == {"a": 0, "b": 0, "c": 2}


def _asks(cpu: str, **more: str) -> Json:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


def test_requests_add_up_containers_init_containers_sidecars_and_overhead() -> None:
    found = requests_of({"spec": {"containers": [_asks("1"), _asks("500m")]}})
    assert found["cpu"] == Fraction(3, 2)
    assert found["pods"] == 1
    spec: Json = {"containers": [_asks("1")], "initContainers": [_asks("3"), _asks("2")]}
    assert requests_of({"spec": spec})["cpu"] == 3
    sidecar = _asks("1", restartPolicy="Always")
    first: Json = {"containers": [_asks("1")], "initContainers": [sidecar, _asks("3")]}
    last: Json = {"containers": [_asks("1")], "initContainers": [_asks("3"), sidecar]}
    assert requests_of({"spec": first})["cpu"] == 4
    assert requests_of({"spec": last})["cpu"] == 3
    spec: Json = {"containers": [_asks("1")], "overhead": {"cpu": "250m"}}
    assert requests_of({"spec": spec})["cpu"] == Fraction(5, 4)


def test_a_pod_waits_from_its_condition_on_and_needs_no_node_once_finished() -> None:
    assert needs_of(pod()).unschedulable_since == NOW
    assert needs_of(pod(status={"conditions": []})).unschedulable_since is None
    leaving: Json = {**pod(), "metadata": {"name": "p", "deletionTimestamp": "now"}}
    assert needs_of(leaving).unschedulable_since is None
    assert node_of(pod(nodeName="n")) == "n"
    assert node_of(pod(nodeName="n", status={"phase": "Failed"})) == ""
    assert moment(None) < moment("2026-11-21T09:00:00Z") == NOW


def test_selectors_affinity_and_tolerations_are_taken_over() -> None:
    rule: Json = {"key": "a", "operator": "In", "values": ["1", "2"]}
    by_name: Json = {"key": "metadata.name", "operator": "In", "values": ["n"]}
    terms: list[JsonValue] = [
        {"matchExpressions": [rule]},
        {"matchExpressions": [rule], "matchFields": [by_name]},
    ]
    affinity: Json = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }
    tolerations: list[JsonValue] = [
        {"operator": "Exists"},
        {"key": "k", "value": "v", "effect": "NoExecute"},
        {"key": "k", "operator": "Equal"},
    ]
    found = needs_of(pod(nodeSelector={"b": "c"}, affinity=affinity, tolerations=tolerations))
    assert found.selector == {"b": "c"}
    assert found.terms == ((Requirement(key="a", operator="In", values=("1", "2")),), ())
    assert found.tolerations == (
        Toleration(),
        Toleration(key="k", value="v", effect="NoExecute"),
        Toleration(key="k", value=""),
    )
    wish: Json = {"key": "k", "effect": "PreferNoSchedule"}
    (seen,) = node_infos([node(spec={"taints": [wish]})], [])
    assert seen.taints == (Taint(key="k", value="", effect="PreferNoSchedule"),)
