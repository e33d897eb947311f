"""What a pod asks of its node is read from it as the scheduler reads it."""

from fractions import Fraction

from holdfast.scheduling.json import Json
from holdfast.simulator.cluster_autoscaler.pods import is_daemons, moment, needs_of, node_of, requests_of
from tests.support.autoscaling_objects import NOW, pod


def _asks(cpu: str, **more: str) -> Json:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


def test_containers_side_by_side_need_the_sum_of_what_they_ask_for() -> None:
    found = requests_of({"spec": {"containers": [_asks("1"), _asks("500m")]}})
    assert found["cpu"] == Fraction(3, 2), "both run at once"
    assert found["pods"] == 1, "a node runs so many pods and no more"


def test_init_containers_count_where_one_of_them_needs_more_than_all_that_follow() -> None:
    spec: Json = {"containers": [_asks("1")], "initContainers": [_asks("3"), _asks("2")]}
    assert requests_of({"spec": spec})["cpu"] == 3, "they run one after another, before the others"


def test_a_sidecar_is_there_beside_the_others_from_its_turn_on() -> None:
    sidecar = _asks("1", restartPolicy="Always")
    first: Json = {"containers": [_asks("1")], "initContainers": [sidecar, _asks("3")]}
    last: Json = {"containers": [_asks("1")], "initContainers": [_asks("3"), sidecar]}
    assert requests_of({"spec": first})["cpu"] == 4, "it runs beside the init container after it"
    assert requests_of({"spec": last})["cpu"] == 3, "and not beside the one before it"


def test_overhead_comes_on_top() -> None:
    spec: Json = {"containers": [_asks("1")], "overhead": {"cpu": "250m"}}
    assert requests_of({"spec": spec})["cpu"] == Fraction(5, 4), "a sandbox needs room as well"


def test_a_pod_waits_from_when_the_scheduler_found_no_node_for_it() -> None:
    assert needs_of(pod()).unschedulable_since == NOW, "its condition says when"
    assert needs_of(pod(status={"conditions": []})).unschedulable_since is None, "nobody has looked at it yet"
    leaving: Json = {**pod(), "metadata": {"name": "p", "deletionTimestamp": "now"}}
    assert needs_of(leaving).unschedulable_since is None, "no machine is bought for a pod on its way out"


def test_a_pod_that_has_ended_takes_no_room() -> None:
    assert node_of(pod(nodeName="n")) == "n", "it is on its node"
    assert node_of(pod(nodeName="n", status={"phase": "Failed"})) == "", "what it had is free again"


def test_selectors_affinity_and_tolerations_are_taken_over() -> None:
    term: Json = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    affinity: Json = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }
    found = needs_of(pod(nodeSelector={"b": "c"}, affinity=affinity, tolerations=[{"operator": "Exists"}]))
    assert (found.selector, found.terms, found.tolerations) == (
        {"b": "c"},
        (term,),
        ({"operator": "Exists"},),
    ), "each is a condition of its own"


def test_a_daemonsets_pod_is_known_by_its_owner() -> None:
    assert is_daemons({"metadata": {"ownerReferences": [{"kind": "DaemonSet"}]}}), "it goes with its node"
    assert not is_daemons({"metadata": {"ownerReferences": [{"kind": "Job"}]}}), "it keeps its node"


def test_a_time_that_is_not_given_is_long_ago() -> None:
    assert moment(None) < moment("2026-11-21T09:00:00Z") == NOW, (
        "whatever is without one has been there for ever"
    )
