"""What the autoscaler sees of a cluster is what is there."""

from fractions import Fraction

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.reachability.affinity import Requirement
from pulumi_holdfast.ladder.taints import Taint, Toleration
from pulumi_holdfast.rehearsal.clouds.gcp.nodes import template_of
from pulumi_holdfast.rehearsal.clouds.machines import Instance
from pulumi_holdfast.rehearsal.clouds.state import Inventory
from pulumi_holdfast.rehearsal.cluster_autoscaler.node_groups import NodeGroup
from pulumi_holdfast.rehearsal.cluster_autoscaler.observation import SHUTTING_DOWN, node_infos, upcoming
from pulumi_holdfast.rehearsal.cluster_autoscaler.scale_up import moment, needs_of, node_of, requests_of
from tests.support.builders.autoscaling_objects import NOW, node, node_pool, pod


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
