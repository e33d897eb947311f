"""What `TrainingNamespace` registers."""

from dataclasses import replace

import pytest
from pulumi import Output

from pulumi_holdfast.kubernetes.fallback_policy import facts_object, shape_object
from pulumi_holdfast.kubernetes.network import TrainingNetwork
from pulumi_holdfast.kubernetes.training_namespace import (
    SERVICE_ACCOUNT,
    PodSecurity,
    TrainingNamespace,
    TrainingNamespaceArgs,
    quota_limits,
    service_account_of,
)
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.ladder import Ladder, Tier
from pulumi_holdfast.ladder.quotas import Quota, derived_quota
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import objects, text, value
from tests.support.ladders import FACTS, SHAPES

URI = "file:///checkpoints/vision"
QUOTA = Quota(cpu_millis=64_500, memory_mib=2048, gpus=96, pods=1000, storage_mib=1024, objects=300)
ARGS = TrainingNamespaceArgs(
    namespace="vision",
    ladder=Ladder(tiers=(Tier(pool="a100-spot", max_failures=5), Tier(pool="a100"))),
    checkpoint_uri=URI,
    quota=QUOTA,
)


def recorded(args: TrainingNamespaceArgs = ARGS, *, preview: bool = False) -> Recording:
    return record(lambda: TrainingNamespace("vision", args), preview=preview)


@pytest.mark.parametrize("standard", ["baseline", "privileged", "restricted"])
def test_the_namespace_has_the_training_label_and_the_pod_security_standard(standard: PodSecurity) -> None:
    args = ARGS if standard == "baseline" else replace(ARGS, pod_security=standard)
    namespace = recorded(args).one("core/v1:Namespace")
    assert namespace.inputs["metadata"] == {
        "name": "vision",
        "labels": {"holdfast.dev/training": "true", "pod-security.kubernetes.io/enforce": standard},
    }


@pytest.mark.parametrize("preview", [False, True])
def test_the_ladder_has_a_fixed_name_and_its_namespace_also_on_preview(preview: bool) -> None:
    ladder = recorded(preview=preview).one("holdfast.dev/v1alpha1:FallbackPolicy")
    assert ladder.inputs["metadata"] == {"name": "ladder", "namespace": "vision"}
    assert ladder.inputs["spec"] == {"tiers": [{"pool": "a100-spot", "maxFailures": 5}, {"pool": "a100"}]}


def test_the_ladder_contains_the_known_facts_of_its_pools_and_the_shapes_of_its_jobs() -> None:
    args = replace(ARGS, pools={"a100-spot": FACTS}, shapes=SHAPES)
    ladder = recorded(args).one("holdfast.dev/v1alpha1:FallbackPolicy")
    first, second = objects(ladder, "spec", "tiers")
    assert first["facts"] == facts_object(FACTS)
    assert "facts" not in second
    shapes = [shape_object(shape) for shape in SHAPES]
    assert value(ladder, "spec", "shapes") == shapes


@pytest.mark.parametrize("preview", [False, True])
def test_a_quota_limits_what_pools_cost_in_the_namespace(preview: bool) -> None:
    recording = recorded(preview=preview)
    quota = recording.one("core/v1:ResourceQuota")
    metadata = quota.inputs["metadata"]
    assert isinstance(metadata, dict)
    assert (metadata["name"], metadata["namespace"]) == ("training", "vision"), "policies need it"
    assert quota.inputs["spec"] == {
        "hard": {
            "requests.cpu": "64500m",
            "requests.memory": "2Gi",
            "requests.nvidia.com/gpu": "96",
            "pods": "1000",
            "requests.storage": "1Gi",
            "count/configmaps": "300",
            "count/jobsets.jobset.x-k8s.io": "300",
            "count/rayclusters.ray.io": "300",
            "count/rayjobs.ray.io": "300",
            "count/jobs.batch": "2300",
            "count/persistentvolumeclaims": "2300",
            "count/pods": "2300",
            "count/services": "2300",
        }
    }
    (defaults,) = objects(recording.one("core/v1:LimitRange"), "spec", "limits")
    assert defaults["defaultRequest"] == {"cpu": "10m", "memory": "16Mi"}, (
        "the API server would reject containers without requests"
    )
    assert not recorded(replace(ARGS, quota=None, bounded=False)).of("core/v1:ResourceQuota")


def test_a_namespace_without_a_quota_gets_the_capacity_of_its_ladder() -> None:
    facts = {"a100-spot": FACTS, "a100": FACTS, "of-another-ladder": FACTS}
    (quota,) = recorded(replace(ARGS, quota=None, pools=facts)).of("core/v1:ResourceQuota")
    assert quota.inputs["spec"] == {"hard": quota_limits(derived_quota([FACTS, FACTS], ()))}
    with pytest.raises(ConfigError, match="nothing known of a100"):
        recorded(replace(ARGS, quota=None, pools={"a100-spot": FACTS}))


def test_the_namespace_says_how_high_the_priority_of_its_pods_may_be() -> None:
    namespace = recorded(replace(ARGS, highest_priority=1000)).one("core/v1:Namespace")
    assert value(namespace, "metadata", "annotations") == {"holdfast.dev/highest-priority": "1000"}


def test_no_pod_is_admitted_before_the_network_policy_of_its_namespace() -> None:
    recording = recorded(replace(ARGS, network=TrainingNetwork(allow_to=["mlflow"])))
    policy = recording.one(":NetworkPolicy")
    assert policy.inputs["metadata"] == {"name": "holdfast", "namespace": "vision"}
    assert policy.name in recording.everything_before(recording.one(":FallbackPolicy"))
    assert not recorded().of(":NetworkPolicy")


def test_the_fallback_controller_may_move_the_jobs() -> None:
    binding = recorded().one(":RoleBinding", "vision-fallback-controller-jobs")
    assert text(binding, "metadata", "namespace") == "vision"
    assert text(binding, "roleRef", "name") == "fallback-controller-jobs"
    assert binding.inputs["subjects"] == [
        {"kind": "ServiceAccount", "name": "fallback-controller", "namespace": "holdfast-system"}
    ]


def test_kuberay_may_run_the_jobs() -> None:
    binding = recorded().one(":RoleBinding", "vision-kuberay-jobs")
    assert text(binding, "metadata", "namespace") == "vision"
    assert text(binding, "roleRef", "name") == "kuberay-jobs"
    (subject,) = objects(binding, "subjects")
    assert subject == {"kind": "ServiceAccount", "name": "kuberay-operator", "namespace": "kuberay-system"}


def test_pods_get_the_checkpoint_uri_and_a_service_account_without_api_token() -> None:
    recording = recorded(replace(ARGS, checkpoint_uri=Output.from_input(URI)))
    checkpoints = recording.one("core/v1:ConfigMap")
    assert checkpoints.inputs["metadata"] == {"name": "checkpoints", "namespace": "vision"}
    assert checkpoints.inputs["data"] == {"CHECKPOINT_URI": URI}
    assert recording.one("core/v1:ServiceAccount").inputs == {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "trainer", "namespace": "vision"},
        "automountServiceAccountToken": False,
    }


def test_all_objects_are_created_and_deleted_with_the_namespace() -> None:
    recording = recorded()
    inside = [one for one in recording if one.name.startswith("vision-") and "Namespace" not in one.type]
    assert len(inside) == 7, (
        "service account, checkpoints, ladder, quota, default requests and two role bindings"
    )
    for resource in inside:
        assert "vision-namespace" in resource.depends_on, f"{resource.name} is created in the namespace"
        assert resource.deleted_with == "vision-namespace", f"{resource.name} is deleted with the namespace"


def test_the_service_account_can_have_another_name_and_identity_annotations() -> None:
    annotations = {"azure.workload.identity/client-id": Output.from_input("an-id")}
    name = service_account_of("gcp-dev")
    account = recorded(replace(ARGS, service_account=name, identity=annotations)).one(":ServiceAccount")
    assert account.inputs["metadata"] == {
        "name": "trainer-gcp-dev",
        "namespace": "vision",
        "annotations": {"azure.workload.identity/client-id": "an-id"},
    }
    assert account.name == "vision-trainer"
    names = {SERVICE_ACCOUNT, name, service_account_of("gcp-prod")}
    assert len(names) == 3, "environments with the same account would share their checkpoints"
