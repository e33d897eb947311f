"""A job's reservation, its taint, and the reservations that deleted jobs leave behind."""

from pulumi_holdfast.controller.reservations.reserved_capacity import (
    orphans,
    release_patch,
    reservation_of,
    reserve_patch,
    reserved_for,
)
from pulumi_holdfast.controller.state_machine.observation import Reservation
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import POOL, RESERVED_FOR
from pulumi_holdfast.ladder.taints import SPOT

HELD: Json = {"key": RESERVED_FOR, "value": "job-1", "effect": "NoSchedule"}


def placeholder(name: str, node: str = "", uid: str = "job-1", **metadata: str) -> Json:
    return {
        "metadata": {"name": name, "labels": {RESERVED_FOR: uid, POOL: "a-spot"}, **metadata},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Running" if node else "Pending"},
    }


def node(name: str, *taints: Json, ready: str = "True") -> Json:
    return {
        "metadata": {"name": name, "labels": {POOL: "a-spot"}, "resourceVersion": "7"},
        "spec": {"taints": list(taints)},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def capacity(pods: list[Json], *nodes: Json) -> Reservation | None:
    return reservation_of(
        "job-1", pods, {str(mapping(each.get("metadata"))["name"]): each for each in nodes}, None
    )


def test_without_placeholders_and_taints_there_is_no_reservation() -> None:
    assert capacity([], node("n1")) is None, "an ordinary node is not reserved"
    assert capacity([placeholder("p", "n1", uid="job-2")], node("n1")) is None, "nor is another job's"


def test_a_placeholder_counts_only_on_a_live_node() -> None:
    held = capacity([placeholder("p0", "n1"), placeholder("p1")], node("n1"))
    assert held == Reservation(pool="a-spot", pods=2, placed=1, tainted=0, nodes=("n1",)), "one still waits"
    held = capacity([placeholder("p0", "n1")], node("n1", ready="Unknown"))
    assert held is not None, "it is still to be released"
    assert held.placed == 0, "but no pod could run there"
    held = capacity([placeholder("p0", "n1")])
    assert held is not None, "the pod is there"
    assert held.placed == 0, "and its node was not seen"
    going = placeholder("p0", "n1", deletionTimestamp="2030-05-01T12:00:00Z")
    ended = {**placeholder("p1", "n1"), "status": {"phase": "Failed"}}
    held = capacity([going, ended], node("n1"))
    assert held == Reservation(pool="a-spot", pods=0, placed=0, tainted=0), "they are only to be cleared away"


def test_tainted_nodes_are_counted_by_their_placeholders() -> None:
    held = capacity(
        [placeholder("p0", "n1"), placeholder("p1", "n1"), placeholder("p2", "n2")],
        node("n1", HELD),
        node("n2"),
    )
    assert held is not None, "three placeholders stand"
    assert (held.placed, held.tainted) == (3, 2), "n2 could be lost to a stranger"


def test_a_taint_without_placeholders_is_a_reservation() -> None:
    held = capacity([], node("n1", HELD))
    assert held == Reservation(pool="a-spot", pods=0, placed=0, tainted=0, nodes=("n1",)), (
        "it keeps every other pod off"
    )


def test_a_node_is_reserved_once_with_taint_label_and_resource_version() -> None:
    patch = reserve_patch(node("n1", SPOT.as_taint()), "job-1")
    assert patch == {
        "metadata": {"resourceVersion": "7", "labels": {RESERVED_FOR: "job-1"}},
        "spec": {"taints": [SPOT.as_taint(), HELD]},
    }, "the list is replaced as a whole, so a concurrent taint must make it fail"
    assert reserve_patch(node("n1", HELD), "job-1") is None, "done"
    assert reserve_patch(node("n1", HELD), "job-2") is None, "and not taken from another job"


def test_a_released_node_is_unchanged_and_only_a_taint_names_its_job() -> None:
    assert release_patch(node("n1", SPOT.as_taint(), HELD)) == {
        "metadata": {"resourceVersion": "7", "labels": {RESERVED_FOR: None}},
        "spec": {"taints": [SPOT.as_taint()]},
    }, "its other taints are not ours"
    assert release_patch(node("n1", SPOT.as_taint())) is None, "one that is not held needs nothing"
    assert (reserved_for(node("n1", HELD)), reserved_for(node("n1"))) == ("job-1", None), (
        "the label only finds it"
    )


def test_reservations_of_deleted_jobs_are_found() -> None:
    left = orphans(
        [placeholder("p0"), placeholder("p1", uid="job-2")],
        [node("n1", HELD), node("n2"), node("n3", {**HELD, "value": "job-2"})],
        lambda uid: uid == "job-2",
    )
    assert (left.placeholders, left.nodes) == (("p0",), ("n1",)), "job-1 is no more; job-2 still climbs"
