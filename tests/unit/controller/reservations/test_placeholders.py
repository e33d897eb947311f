"""Placeholder pods make a pool provision exactly the nodes that a gang needs, and keep them."""

from dataclasses import replace

from pulumi_holdfast.controller.api.objects import metadata_of, name_of, objects
from pulumi_holdfast.controller.reservations.placeholders import (
    PlaceholderRequest,
    placeholder_changes,
    placeholders,
    reservation_toleration,
)
from pulumi_holdfast.controller.reservations.pod_shapes import PodShape
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
    resources = mapping(container(placeholders(REQUEST)[0]).get("resources"))
    assert resources["limits"] == resources["requests"], "the API server refuses GPUs otherwise"


def test_placeholders_tolerate_the_taints_of_the_better_tiers_pool() -> None:
    pod = placeholders(REQUEST)[0]
    assert spec(pod)["nodeSelector"] == {POOL: "a-spot"}, "and nowhere else"
    expected = [GPU.as_toleration(), SPOT.as_toleration(), reservation_toleration(UID)]
    assert spec(pod)["tolerations"] == expected, (
        "each once, and that of the hold, which comes while some still wait"
    )


def test_placeholders_with_fabric_adapters_are_in_one_zone() -> None:
    shape = PodShape(count=2, requests={"cpu": "90", "vpc.amazonaws.com/efa": "4"})
    for pod in placeholders(replace(REQUEST, shapes=(shape,))):
        (term,) = objects(
            mapping(mapping(spec(pod).get("affinity")).get("podAffinity")).get(
                "requiredDuringSchedulingIgnoredDuringExecution"
            )
        )
        assert term["topologyKey"] == "topology.kubernetes.io/zone", (
            "the gang would not fit on nodes of several zones"
        )
        assert mapping(term["labelSelector"])["matchLabels"] == {RESERVED_FOR: UID}, (
            "zones of other jobs do not matter"
        )
    assert "affinity" not in spec(placeholders(REQUEST)[0]), "other gangs may use every zone"


def test_autoscalers_provide_nodes_for_placeholders_and_do_not_move_them() -> None:
    annotations = mapping(metadata_of(placeholders(REQUEST)[0]).get("annotations"))
    assert annotations["karpenter.sh/do-not-disrupt"] == "true", (
        "Karpenter would consolidate their nodes away"
    )
    assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false", "and so would GKE"
    assert spec(placeholders(REQUEST)[0])["priorityClassName"] == RESERVATION_PRIORITY_CLASS, (
        "below every job"
    )
    assert -10 <= RESERVATION_PRIORITY < 0, "lower ones buy no node"


def test_placeholders_have_their_own_namespace_and_deterministic_names() -> None:
    metadata = metadata_of(placeholders(REQUEST)[0])
    assert metadata["namespace"] == RESERVATION_NAMESPACE, "a team's quota is used up by its job"
    assert mapping(metadata.get("labels")) == {RESERVED_FOR: UID, POOL: "a-spot", SHAPE: "0"}, (
        "by which they, and those of one template, are found again"
    )
    assert "JobSet vision/train" in mapping(metadata.get("annotations")).values(), "for users who inspect it"
    names = [name_of(pod) for pod in placeholders(REQUEST)]
    assert names == [f"hold-{UID}-{number}" for number in range(3)], "a controller may die half way"
    assert all(len(name) <= 63 for name in names), "a pod's name is its host name"


def test_placeholders_meet_the_restricted_pod_security_standard() -> None:
    for pod in placeholders(REQUEST):
        security = mapping(container(pod).get("securityContext"))
        assert security["allowPrivilegeEscalation"] is False, "restricted"
        assert security["capabilities"] == {"drop": ["ALL"]}, "restricted"
        assert mapping(spec(pod).get("securityContext"))["runAsNonRoot"] is True, "restricted"
        assert spec(pod)["automountServiceAccountToken"] is False, "they need no API access"


def test_missing_placeholders_are_created_and_ended_ones_deleted() -> None:
    there = placeholders(REQUEST)[:2]
    changes = placeholder_changes(REQUEST, there)
    assert [name_of(pod) for pod in changes.create] == [f"hold-{UID}-2"], "the others are there"
    assert changes.delete == (), "and well"
    ended: Json = {**placeholders(REQUEST)[0], "status": {"phase": "Failed"}}
    changes = placeholder_changes(REQUEST, [ended, *placeholders(REQUEST)[1:]])
    assert changes.delete == (f"hold-{UID}-0",), "a node that was reclaimed leaves it behind"
    assert changes.create == (), "it can be made once the name is free"
