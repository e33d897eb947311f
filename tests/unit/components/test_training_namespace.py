"""What `TrainingNamespace` registers."""

from __future__ import annotations

import pulumi
import pytest

from holdfast.components.fallback_policy.ladder import facts_object, shape_object
from holdfast.components.training_namespace import (
    SERVICE_ACCOUNT,
    PodSecurity,
    TrainingNamespace,
    TrainingNamespaceArgs,
    service_account_of,
)
from holdfast.scheduling.ladder import Ladder, Tier
from holdfast.scheduling.quotas import Quota
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.json_objects import obj, objects
from tests.support.ladders import FACTS, SHAPES

LADDER = Ladder(tiers=(Tier(pool="a100-spot", max_failures=5), Tier(pool="a100")))
URI = "file:///checkpoints/vision"


def recorded(*, pod_security: PodSecurity = "baseline", preview: bool = False) -> Recording:
    def build() -> None:
        args = TrainingNamespaceArgs(
            namespace="vision",
            ladder=LADDER,
            checkpoint_uri=pulumi.Output.from_input(URI),
            pod_security=pod_security,
        )
        TrainingNamespace("vision", args)

    return record(build, preview=preview)


def test_the_namespace_is_marked_as_training_and_keeps_pods_off_the_host() -> None:
    namespace = recorded().one("core/v1:Namespace")
    assert namespace.inputs["metadata"] == {
        "name": "vision",
        "labels": {"holdfast.dev/training": "true", "pod-security.kubernetes.io/enforce": "baseline"},
    }, "admission and policies find it by the one label, Pod Security by the other"


@pytest.mark.parametrize("standard", ["privileged", "restricted"])
def test_the_pod_security_standard_can_be_chosen(standard: PodSecurity) -> None:
    metadata = obj(recorded(pod_security=standard).one("core/v1:Namespace").inputs["metadata"])
    assert obj(metadata["labels"])["pod-security.kubernetes.io/enforce"] == standard, (
        "training over RDMA needs the host, and a namespace of notebooks may be held to more"
    )


def test_its_jobs_have_a_ladder_under_the_name_they_look_for() -> None:
    ladder = recorded().one("holdfast.dev/v1alpha1:FallbackPolicy")
    assert ladder.inputs["metadata"] == {"name": "ladder", "namespace": "vision"}, "jobs find it by this name"
    assert ladder.inputs["spec"] == {"tiers": [{"pool": "a100-spot", "maxFailures": 5}, {"pool": "a100"}]}, (
        "the ladder must be the one of the arguments"
    )


def test_its_ladder_says_what_is_known_of_its_pools() -> None:
    args = TrainingNamespaceArgs(
        namespace="vision", ladder=LADDER, checkpoint_uri=URI, pools={"a100-spot": FACTS}
    )
    ladder = record(lambda: TrainingNamespace("vision", args)).one("holdfast.dev/v1alpha1:FallbackPolicy")
    first, second = objects(obj(ladder.inputs["spec"])["tiers"])
    assert first["facts"] == facts_object(FACTS), "an empty pool has no node to be looked at"
    assert "facts" not in second, "of the other nothing is known"


def test_its_ladder_says_what_its_jobs_look_like() -> None:
    args = TrainingNamespaceArgs(namespace="vision", ladder=LADDER, checkpoint_uri=URI, shapes=SHAPES)
    ladder = record(lambda: TrainingNamespace("vision", args)).one("holdfast.dev/v1alpha1:FallbackPolicy")
    assert obj(ladder.inputs["spec"])["shapes"] == [shape_object(shape) for shape in SHAPES], (
        "jobs come later, and the policies prove of their shapes that they can fall back"
    )


def test_its_pods_are_held_to_a_quota_that_no_pod_has_to_speak_to() -> None:
    args = TrainingNamespaceArgs(
        namespace="vision", ladder=LADDER, checkpoint_uri=URI, quota=Quota(gpus=96, pods=1000)
    )
    recording = record(lambda: TrainingNamespace("vision", args))
    quota = recording.one("core/v1:ResourceQuota")
    assert quota.inputs["metadata"] == {"name": "training", "namespace": "vision"}, "in this namespace"
    assert quota.inputs["spec"] == {"hard": {"requests.nvidia.com/gpu": "96", "pods": "1000"}}, (
        "one of CPUs or memory would refuse every pod that does not say how much it takes"
    )
    assert quota.deleted_with == "vision-namespace", "it goes with the namespace"
    assert "vision-namespace" in quota.depends_on, "and needs it to lie in"


def test_it_has_no_quota_where_none_is_wanted() -> None:
    assert not recorded().of("core/v1:ResourceQuota"), "the one way out of it"


def test_a_preview_knows_which_namespace_the_quota_lies_in() -> None:
    args = TrainingNamespaceArgs(
        namespace="vision", ladder=LADDER, checkpoint_uri=URI, quota=Quota(gpus=96, pods=1000)
    )
    quota = record(lambda: TrainingNamespace("vision", args), preview=True).one("core/v1:ResourceQuota")
    assert obj(quota.inputs["metadata"])["namespace"] == "vision", "or the policies could not tell"


def test_the_fallback_controller_may_move_its_jobs() -> None:
    binding = recorded().one(":RoleBinding")
    assert obj(binding.inputs["metadata"])["namespace"] == "vision", (
        "here, and in no namespace that trains nothing"
    )
    assert obj(binding.inputs["roleRef"])["name"] == "fallback-controller-jobs", "what it does to jobs"
    assert binding.inputs["subjects"] == [
        {"kind": "ServiceAccount", "name": "fallback-controller", "namespace": "holdfast-system"}
    ], "and nobody else"


def test_its_pods_learn_where_their_checkpoints_are() -> None:
    checkpoints = recorded().one("core/v1:ConfigMap")
    assert checkpoints.inputs["metadata"] == {"name": "checkpoints", "namespace": "vision"}, (
        "a name to rely on"
    )
    assert checkpoints.inputs["data"] == {"CHECKPOINT_URI": URI}, "the address that the arguments give"


def test_its_service_account_brings_no_token_for_the_api() -> None:
    account = recorded().one("core/v1:ServiceAccount")
    assert account.inputs == {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "trainer", "namespace": "vision"},
        "automountServiceAccountToken": False,
    }, "training has no business with the cluster's API"


def test_everything_in_it_comes_after_the_namespace() -> None:
    everything = recorded()
    inside = [
        resource
        for resource in everything
        if resource.name.startswith("vision-") and "Namespace" not in resource.type
    ]
    assert len(inside) == 4, "service account, checkpoints, ladder, and the controller's way in"
    for resource in inside:
        assert "vision-namespace" in resource.depends_on, f"{resource.name} needs the namespace to lie in"


def test_a_preview_knows_which_namespace_the_ladder_lies_in() -> None:
    ladder = recorded(preview=True).one("holdfast.dev/v1alpha1:FallbackPolicy")
    assert ladder.inputs["metadata"] == {"name": "ladder", "namespace": "vision"}, (
        "an output of the namespace would be unknown in a preview, and the policies could not tell"
    )


def test_its_service_account_can_have_another_name() -> None:
    args = TrainingNamespaceArgs(
        namespace="vision", ladder=LADDER, checkpoint_uri=URI, service_account=service_account_of("gcp-dev")
    )
    account = record(lambda: TrainingNamespace("vision", args)).one("core/v1:ServiceAccount")
    assert account.inputs["metadata"] == {"name": "trainer-gcp-dev", "namespace": "vision"}, (
        "where only the account's name tells two environments apart"
    )
    assert account.name == "vision-trainer", "what the program calls it stays"


def test_two_environments_have_two_names() -> None:
    names = {SERVICE_ACCOUNT, service_account_of("gcp-dev"), service_account_of("gcp-prod")}
    assert len(names) == 3, "they would share their checkpoints"


def test_its_service_account_can_say_whose_identity_its_pods_have() -> None:
    identity = {"azure.workload.identity/client-id": pulumi.Output.from_input("an-id")}
    args = TrainingNamespaceArgs(namespace="vision", ladder=LADDER, checkpoint_uri=URI, identity=identity)
    account = record(lambda: TrainingNamespace("vision", args)).one("core/v1:ServiceAccount")
    assert account.inputs["metadata"] == {
        "name": "trainer",
        "namespace": "vision",
        "annotations": {"azure.workload.identity/client-id": "an-id"},
    }, "where a cloud's own webhook reads it there"
