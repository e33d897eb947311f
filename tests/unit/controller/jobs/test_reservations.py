"""Placeholder pods make a pool provision exactly the nodes that a gang needs, and keep them."""

from dataclasses import replace

from pulumi_holdfast.controller.jobs.observation import Reservation
from pulumi_holdfast.controller.jobs.pod_shapes import PodShape
from pulumi_holdfast.controller.jobs.reservations import (
    MOST_AT_ONCE,
    PlaceholderRequest,
    orphans,
    placeholder_changes,
    placeholders,
    release_patch,
    reservation_of,
    reservation_toleration,
    reserve_patch,
    reserved_for,
)
from pulumi_holdfast.controller.kube.objects import metadata_of, name_of, objects
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import (
    POOL,
    RESERVATION_NAMESPACE,
    RESERVATION_PRIORITY,
    RESERVATION_PRIORITY_CLASS,
    RESERVED_FOR,
    SHAPE,
)
from pulumi_holdfast.ladder.taints import GPU, SPOT

UID = "6f2c2f0e-0000-4000-8000-000000000001"
REQUEST = PlaceholderRequest(
    uid=UID,
    job="JobSet vision/train",
    pool="a-spot",
    shapes=(
        PodShape(count=2, requests={"cpu": "90", "nvidia.com/gpu": "8"}, tolerations=(GPU.as_toleration(),)),
        PodShape(count=1, requests={"cpu": "4"}),
    ),
    taints=(SPOT, GPU),
    image="registry.example/pause:3.10",
)


def spec(pod: Json) -> Json:
    return mapping(pod.get("spec"))


def container(pod: Json) -> Json:
    return objects(spec(pod).get("containers"))[0]


def test_each_pod_of_the_gang_has_a_placeholder_with_its_requests() -> None:
    asked = [mapping(container(pod).get("resources")).get("requests") for pod in placeholders(REQUEST)]
    gpus = {"cpu": "90", "nvidia.com/gpu": "8"}
    assert asked == [gpus, gpus, {"cpu": "4"}], "less would buy too small a machine"
    resources = mapping(container(next(iter(placeholders(REQUEST)))).get("resources"))
    assert resources["limits"] == resources["requests"], "the API server refuses GPUs otherwise"


def test_placeholders_tolerate_the_taints_of_the_better_tiers_pool() -> None:
    pod = next(iter(placeholders(REQUEST)))
    assert spec(pod)["nodeSelector"] == {POOL: "a-spot"}
    expected = [GPU.as_toleration(), SPOT.as_toleration(), reservation_toleration(UID)]
    assert spec(pod)["tolerations"] == expected


def test_placeholders_with_fabric_adapters_are_in_one_zone() -> None:
    shape = PodShape(count=2, requests={"cpu": "90", "vpc.amazonaws.com/efa": "4"})
    for pod in placeholders(replace(REQUEST, shapes=(shape,))):
        (term,) = objects(
            mapping(mapping(spec(pod).get("affinity")).get("podAffinity")).get(
                "requiredDuringSchedulingIgnoredDuringExecution"
            )
        )
        assert term["topologyKey"] == "topology.kubernetes.io/zone"
        assert mapping(term["labelSelector"])["matchLabels"] == {RESERVED_FOR: UID}
    assert "affinity" not in spec(next(iter(placeholders(REQUEST))))


def test_autoscalers_provide_nodes_for_placeholders_and_do_not_move_them() -> None:
    annotations = mapping(metadata_of(next(iter(placeholders(REQUEST)))).get("annotations"))
    assert annotations["karpenter.sh/do-not-disrupt"] == "true"
    assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    assert spec(next(iter(placeholders(REQUEST))))["priorityClassName"] == RESERVATION_PRIORITY_CLASS
    assert -10 <= RESERVATION_PRIORITY < 0


def test_placeholders_have_their_own_namespace_and_deterministic_names() -> None:
    metadata = metadata_of(next(iter(placeholders(REQUEST))))
    assert metadata["namespace"] == RESERVATION_NAMESPACE
    assert mapping(metadata.get("labels")) == {RESERVED_FOR: UID, POOL: "a-spot", SHAPE: "0"}
    assert "JobSet vision/train" in mapping(metadata.get("annotations")).values()
    names = [name_of(pod) for pod in placeholders(REQUEST)]
    assert names == [f"hold-{UID}-{number}" for number in range(3)]
    assert all(len(name) <= 63 for name in names)


def test_placeholders_meet_the_restricted_pod_security_standard() -> None:
    for pod in placeholders(REQUEST):
        security = mapping(container(pod).get("securityContext"))
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert mapping(spec(pod).get("securityContext"))["runAsNonRoot"] is True
        assert spec(pod)["automountServiceAccountToken"] is False


def test_missing_placeholders_are_created_and_ended_ones_deleted() -> None:
    there = list(placeholders(REQUEST))[:2]
    changes = placeholder_changes(REQUEST, there)
    assert [name_of(pod) for pod in changes.create] == [f"hold-{UID}-2"]
    assert changes.delete == ()
    ended: Json = {**next(iter(placeholders(REQUEST))), "status": {"phase": "Failed"}}
    changes = placeholder_changes(REQUEST, [ended, *list(placeholders(REQUEST))[1:]])
    assert changes.delete == (f"hold-{UID}-0",)
    assert changes.create == ()


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
    assert capacity([], node("n1")) is None
    assert capacity([placeholder("p", "n1", uid="job-2")], node("n1")) is None


def test_a_placeholder_counts_only_on_a_live_node() -> None:
    held = capacity([placeholder("p0", "n1"), placeholder("p1")], node("n1"))
    assert held == Reservation(pool="a-spot", pods=2, placed=1, tainted=0, nodes=("n1",))
    held = capacity([placeholder("p0", "n1")], node("n1", ready="Unknown"))
    assert held is not None
    assert held.placed == 0, "but no pod could run there"
    held = capacity([placeholder("p0", "n1")])
    assert held is not None
    assert held.placed == 0
    going = placeholder("p0", "n1", deletionTimestamp="2030-05-01T12:00:00Z")
    ended = {**placeholder("p1", "n1"), "status": {"phase": "Failed"}}
    held = capacity([going, ended], node("n1"))
    assert held == Reservation(pool="a-spot", pods=0, placed=0, tainted=0)


def test_tainted_nodes_are_counted_by_their_placeholders() -> None:
    held = capacity(
        [placeholder("p0", "n1"), placeholder("p1", "n1"), placeholder("p2", "n2")],
        node("n1", HELD),
        node("n2"),
    )
    assert held is not None
    assert (held.placed, held.tainted) == (3, 2), "n2 could be lost to a stranger"


def test_a_taint_without_placeholders_is_a_reservation() -> None:
    held = capacity([], node("n1", HELD))
    assert held == Reservation(pool="a-spot", pods=0, placed=0, tainted=0, nodes=("n1",))


def test_a_node_is_reserved_once_with_taint_label_and_resource_version() -> None:
    patch = reserve_patch(node("n1", SPOT.as_taint()), "job-1")
    assert patch == {
        "metadata": {"resourceVersion": "7", "labels": {RESERVED_FOR: "job-1"}},
        "spec": {"taints": [SPOT.as_taint(), HELD]},
    }
    assert reserve_patch(node("n1", HELD), "job-1") is None
    assert reserve_patch(node("n1", HELD), "job-2") is None


def test_a_released_node_is_unchanged_and_only_a_taint_names_its_job() -> None:
    assert release_patch(node("n1", SPOT.as_taint(), HELD)) == {
        "metadata": {"resourceVersion": "7", "labels": {RESERVED_FOR: None}},
        "spec": {"taints": [SPOT.as_taint()]},
    }
    assert release_patch(node("n1", SPOT.as_taint())) is None
    assert (reserved_for(node("n1", HELD)), reserved_for(node("n1"))) == ("job-1", None)


def test_reservations_of_deleted_jobs_are_found() -> None:
    left = orphans(
        [placeholder("p0"), placeholder("p1", uid="job-2")],
        [node("n1", HELD), node("n2"), node("n3", {**HELD, "value": "job-2"})],
        lambda uid: uid == "job-2",
    )
    assert (left.placeholders, left.nodes) == (("p0",), ("n1",))


def test_placeholders_are_made_in_steps_however_many_pods_a_gang_says_it_has() -> None:
    request = replace(REQUEST, shapes=(PodShape(count=2_000_000_000, requests={"cpu": "1"}),))
    first = placeholder_changes(request, []).create
    assert len(first) == MOST_AT_ONCE
    following = placeholder_changes(request, first).create
    assert len({name_of(pod) for pod in (*first, *following)}) == 2 * MOST_AT_ONCE
