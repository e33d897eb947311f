"""What `JobAdmission` registers, and by what it recognises spot."""

from __future__ import annotations

from holdfast.components.admission.job_admission import (
    JobAdmission,
    JobAdmissionArgs,
    capacity_selections,
    job_manifests,
)
from holdfast.components.admission.jobset import MOST_RESTARTS
from holdfast.components.admission.rules import NodeSelection, gke_rules, karpenter_rules
from holdfast.components.fallback_policy.schema import MOST_TIERS
from holdfast.scheduling.labels import CAPACITY_TYPE, GKE_PROVISIONING, GKE_SPOT
from holdfast.scheduling.ladder import MOST_FAILURES
from tests.support.builders.training_jobs import POOLS
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.json_objects import obj

POLICY = "admissionregistration.k8s.io/v1:MutatingAdmissionPolicy"
BINDING = "admissionregistration.k8s.io/v1:MutatingAdmissionPolicyBinding"
CAPACITY = capacity_selections(karpenter_rules(POOLS))
NAMES = {
    "training-jobsets",
    "training-jobsets-reapplied",
    "training-rayjobs",
    "training-rayjobs-reapplied",
}


def recorded() -> Recording:
    return record(lambda: JobAdmission("job-admission", JobAdmissionArgs(capacity=CAPACITY)))


def test_spot_is_recognised_as_it_is_in_pods() -> None:
    assert capacity_selections(karpenter_rules(POOLS)) == (
        NodeSelection(key=CAPACITY_TYPE, values=("spot",)),
    ), "pools by name come with each namespace's ladder"
    assert capacity_selections(gke_rules(POOLS)) == (
        NodeSelection(key=GKE_SPOT, values=("true",)),
        NodeSelection(key=GKE_PROVISIONING, values=("spot",)),
    ), "GKE has two labels"


def test_both_kinds_are_looked_at_when_they_come_and_when_they_come_again() -> None:
    admission = recorded()
    for kind in (POLICY, BINDING):
        names = {str(obj(each.inputs["metadata"])["name"]) for each in admission.of(kind)}
        assert names == NAMES, f"one {kind} for each"
    for binding in admission.of(BINDING):
        assert binding.depends_on, "a binding to no policy would let every job pass unseen"


def test_a_policy_arrives_at_the_engine_as_it_was_rendered() -> None:
    admission = recorded()
    for each in job_manifests(CAPACITY):
        assert admission.one(POLICY, f"job-admission-{each.name}").inputs["spec"] == each.policy, each.name
        assert admission.one(BINDING, f"job-admission-{each.name}-binding").inputs["spec"] == each.binding, (
            each.name
        )


def test_a_job_that_is_there_can_go_whatever_happens_to_its_ladder() -> None:
    for each in job_manifests(CAPACITY):
        if each.name.endswith("-reapplied"):
            assert each.policy["failurePolicy"] == "Ignore", "KubeRay's finalizer is taken off by an update"
            assert "paramKind" not in each.policy, "and the ladder of a namespace that goes may go first"


def test_a_job_that_comes_before_its_ladder_is_refused() -> None:
    for each in job_manifests(CAPACITY):
        if not each.name.endswith("-reapplied"):
            assert each.binding["paramRef"] == {"name": "ladder", "parameterNotFoundAction": "Deny"}, (
                "let in as it is, it could never follow one"
            )


def test_no_ladder_counts_as_far_as_the_operators_own_limit() -> None:
    assert MOST_TIERS * MOST_FAILURES < MOST_RESTARTS, "the controller gives a job up, and nobody before it"
