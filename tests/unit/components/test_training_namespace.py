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


def test_the_namespace_has_the_training_label_and_baseline_pod_security() -> None:
    namespace = recorded().one("core/v1:Namespace")
    assert namespace.inputs["metadata"] == {
        "name": "vision",
        "labels": {"holdfast.dev/training": "true", "pod-security.kubernetes.io/enforce": "baseline"},
    }, "admission and policies use the first label, Pod Security the second"


@pytest.mark.parametrize("standard", ["privileged", "restricted"])
def test_the_pod_security_standard_is_configurable(standard: PodSecurity) -> None:
    metadata = obj(recorded(pod_security=standard).one("core/v1:Namespace").inputs["metadata"])
    assert obj(metadata["labels"])["pod-security.kubernetes.io/enforce"] == standard, (
        "RDMA needs privileged pods, and other namespaces may be restricted"
    )


def test_the_ladder_has_a_fixed_name() -> None:
    ladder = recorded().one("holdfast.dev/v1alpha1:FallbackPolicy")
    assert ladder.inputs["metadata"] == {"name": "ladder", "namespace": "vision"}, "jobs find it by this name"
    assert ladder.inputs["spec"] == {"tiers": [{"pool": "a100-spot", "maxFailures": 5}, {"pool": "a100"}]}, (
        "it must be the ladder of the arguments"
    )


def test_the_ladder_contains_the_known_facts_of_its_pools() -> None:
    args = TrainingNamespaceArgs(
        namespace="vision", ladder=LADDER, checkpoint_uri=URI, pools={"a100-spot": FACTS}
    )
    ladder = record(lambda: TrainingNamespace("vision", args)).one("holdfast.dev/v1alpha1:FallbackPolicy")
    first, second = objects(obj(ladder.inputs["spec"])["tiers"])
    assert first["facts"] == facts_object(FACTS), "an empty pool has no nodes to read them from"
    assert "facts" not in second, "the other pool's facts are unknown"


def test_the_ladder_contains_the_shapes_of_its_jobs() -> None:
    args = TrainingNamespaceArgs(namespace="vision", ladder=LADDER, checkpoint_uri=URI, shapes=SHAPES)
    ladder = record(lambda: TrainingNamespace("vision", args)).one("holdfast.dev/v1alpha1:FallbackPolicy")
    assert obj(ladder.inputs["spec"])["shapes"] == [shape_object(shape) for shape in SHAPES], (
        "the policies check that the declared shapes can fall back"
    )


def test_the_quota_limits_gpus_and_pods() -> None:
    args = TrainingNamespaceArgs(
        namespace="vision", ladder=LADDER, checkpoint_uri=URI, quota=Quota(gpus=96, pods=1000)
    )
    recording = record(lambda: TrainingNamespace("vision", args))
    quota = recording.one("core/v1:ResourceQuota")
    assert quota.inputs["metadata"] == {"name": "training", "namespace": "vision"}, "in this namespace"
    assert quota.inputs["spec"] == {"hard": {"requests.nvidia.com/gpu": "96", "pods": "1000"}}, (
        "a limit for CPU or memory would reject pods without requests"
    )
    assert quota.deleted_with == "vision-namespace", "it is deleted with the namespace"
    assert "vision-namespace" in quota.depends_on, "it is created in the namespace"


def test_without_a_quota_there_is_no_resource_quota() -> None:
    assert not recorded().of("core/v1:ResourceQuota"), "pods are unlimited"


def test_the_quotas_namespace_is_known_on_preview() -> None:
    args = TrainingNamespaceArgs(
        namespace="vision", ladder=LADDER, checkpoint_uri=URI, quota=Quota(gpus=96, pods=1000)
    )
    quota = record(lambda: TrainingNamespace("vision", args), preview=True).one("core/v1:ResourceQuota")
    assert obj(quota.inputs["metadata"])["namespace"] == "vision", "the policies need it"


def test_the_fallback_controller_may_move_the_jobs() -> None:
    binding = recorded().one(":RoleBinding")
    assert obj(binding.inputs["metadata"])["namespace"] == "vision", "only in training namespaces"
    assert obj(binding.inputs["roleRef"])["name"] == "fallback-controller-jobs", "its permissions for jobs"
    assert binding.inputs["subjects"] == [
        {"kind": "ServiceAccount", "name": "fallback-controller", "namespace": "holdfast-system"}
    ], "no other subject"


def test_pods_get_the_checkpoint_uri() -> None:
    checkpoints = recorded().one("core/v1:ConfigMap")
    assert checkpoints.inputs["metadata"] == {"name": "checkpoints", "namespace": "vision"}, "as documented"
    assert checkpoints.inputs["data"] == {"CHECKPOINT_URI": URI}, "the URI of the arguments"


def test_the_service_account_has_no_api_token() -> None:
    account = recorded().one("core/v1:ServiceAccount")
    assert account.inputs == {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "trainer", "namespace": "vision"},
        "automountServiceAccountToken": False,
    }, "training pods do not use the Kubernetes API"


def test_all_objects_depend_on_the_namespace() -> None:
    everything = recorded()
    inside = [
        resource
        for resource in everything
        if resource.name.startswith("vision-") and "Namespace" not in resource.type
    ]
    assert len(inside) == 4, "service account, checkpoints, ladder and role binding"
    for resource in inside:
        assert "vision-namespace" in resource.depends_on, f"{resource.name} is created in the namespace"


def test_the_ladders_namespace_is_known_on_preview() -> None:
    ladder = recorded(preview=True).one("holdfast.dev/v1alpha1:FallbackPolicy")
    assert ladder.inputs["metadata"] == {"name": "ladder", "namespace": "vision"}, (
        "an output of the namespace would be unknown, and policies could not check it"
    )


def test_the_service_account_can_have_another_name() -> None:
    args = TrainingNamespaceArgs(
        namespace="vision", ladder=LADDER, checkpoint_uri=URI, service_account=service_account_of("gcp-dev")
    )
    account = record(lambda: TrainingNamespace("vision", args)).one("core/v1:ServiceAccount")
    assert account.inputs["metadata"] == {"name": "trainer-gcp-dev", "namespace": "vision"}, (
        "on Google Cloud its name distinguishes environments"
    )
    assert account.name == "vision-trainer", "the logical name stays"


def test_two_environments_have_different_service_accounts() -> None:
    names = {SERVICE_ACCOUNT, service_account_of("gcp-dev"), service_account_of("gcp-prod")}
    assert len(names) == 3, "they would share their checkpoints"


def test_the_service_account_can_have_identity_annotations() -> None:
    identity = {"azure.workload.identity/client-id": pulumi.Output.from_input("an-id")}
    args = TrainingNamespaceArgs(namespace="vision", ladder=LADDER, checkpoint_uri=URI, identity=identity)
    account = record(lambda: TrainingNamespace("vision", args)).one("core/v1:ServiceAccount")
    assert account.inputs["metadata"] == {
        "name": "trainer",
        "namespace": "vision",
        "annotations": {"azure.workload.identity/client-id": "an-id"},
    }, "a cloud's webhook reads them"
