"""What `JobAdmission` registers, and how it recognizes spot."""

from pulumi_holdfast.kubernetes.admission.job_admission import (
    JobAdmission,
    capacity_selections,
    job_manifests,
)
from pulumi_holdfast.kubernetes.admission.jobset import MOST_RESTARTS
from pulumi_holdfast.kubernetes.admission.rules import NodeSelection, gke_rules, karpenter_rules
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, GKE_PROVISIONING, GKE_SPOT
from pulumi_holdfast.ladder.ladder import MOST_FAILURES, MOST_TIERS
from tests.support.builders.training_jobs import POOLS
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.json_objects import obj

POLICY = "admissionregistration.k8s.io/v1:MutatingAdmissionPolicy"
BINDING = "admissionregistration.k8s.io/v1:MutatingAdmissionPolicyBinding"
CAPACITY = capacity_selections(karpenter_rules(POOLS))
NAMES = {"training-jobsets", "training-jobsets-reapplied", "training-rayjobs", "training-rayjobs-reapplied"}


def recorded() -> Recording:
    return record(lambda: JobAdmission("job-admission", capacity=CAPACITY))


def test_spot_labels_are_those_of_the_pod_rules() -> None:
    assert capacity_selections(karpenter_rules(POOLS)) == (
        NodeSelection(key=CAPACITY_TYPE, values=("spot",)),
    )
    assert capacity_selections(gke_rules(POOLS)) == (
        NodeSelection(key=GKE_SPOT, values=("true",)),
        NodeSelection(key=GKE_PROVISIONING, values=("spot",)),
    )


def test_both_kinds_have_policies_as_rendered_for_creation_and_for_reapplication() -> None:
    admission = recorded()
    for kind in (POLICY, BINDING):
        names = {str(obj(each.inputs["metadata"])["name"]) for each in admission.of(kind)}
        assert names == NAMES, f"one {kind} for each"
    for binding in admission.of(BINDING):
        assert binding.depends_on
    for each in job_manifests(CAPACITY):
        assert admission.one(POLICY, f"job-admission-{each.name}").inputs["spec"] == each.policy, each.name
        assert admission.one(BINDING, f"job-admission-{each.name}-binding").inputs["spec"] == each.binding, (
            each.name
        )


def test_reapplication_rejects_no_update_and_creation_requires_a_ladder() -> None:
    for each in job_manifests(CAPACITY):
        if each.name.endswith("-reapplied"):
            assert each.policy["failurePolicy"] == "Ignore"
            assert "paramKind" not in each.policy
        else:
            assert each.binding["paramRef"] == {"name": "ladder", "parameterNotFoundAction": "Deny"}


def test_the_operators_limits_exceed_what_any_ladder_counts() -> None:
    assert MOST_TIERS * MOST_FAILURES < MOST_RESTARTS
