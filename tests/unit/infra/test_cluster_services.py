"""The services of every cluster: admission, fallback policies, quotas; their order and their content."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from holdfast.policies.inputs.ladders import ladder_of
from holdfast.scheduling.labels import RESERVATION_NAMESPACE
from tests.support.builders.configurations import entry, platform_document, read
from tests.support.builders.policy_programs import STACKS, every, program
from tests.support.clusters.admitted_examples import STACKS as CLOUDS
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from holdfast.policies.resources import StackResource
    from holdfast.scheduling.json import Json
    from holdfast.scheduling.reachability.shape import Shape


VALIDATIONS = ("training-jobsets-can-fall-back", "training-rayjobs-can-fall-back")


@pytest.mark.parametrize("cloud", CLOUDS)
def test_job_validation_depends_on_job_admission_and_the_crd(cloud: str) -> None:
    stack = CLOUDS[cloud]()
    job_admission = {
        each.name for each in stack.of(":MutatingAdmissionPolicyBinding") if "job-admission" in each.name
    }
    assert job_admission, "job admission exists"
    for name in VALIDATIONS:
        earlier = stack.everything_before(stack.one(":ValidatingAdmissionPolicy", f"job-validation-{name}"))
        assert earlier >= job_admission, "validation of unchanged jobs would reject all of them"
        assert "fallback-policy-crd" in earlier, "ladders are what they are judged by"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_namespaces_are_deleted_before_job_validation(cloud: str) -> None:
    stack = CLOUDS[cloud]()
    for ladder in stack.of(":FallbackPolicy"):
        earlier = stack.everything_before(ladder)
        assert earlier >= {f"job-validation-{name}-binding" for name in VALIDATIONS}, "and come after it"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_job_validation_allows_jobs_without_a_ladder(cloud: str) -> None:
    for binding in CLOUDS[cloud]().of(":ValidatingAdmissionPolicyBinding"):
        reference = obj(obj(binding.inputs["spec"])["paramRef"])
        assert reference == {"name": "ladder", "parameterNotFoundAction": "Allow"}, (
            "a job without a ladder is rejected by admission instead"
        )


@pytest.mark.parametrize("cloud", CLOUDS)
def test_ladders_have_the_capacity_of_their_machines(cloud: str) -> None:
    for ladder in CLOUDS[cloud]().of(":FallbackPolicy"):
        for tier in objects(obj(ladder.inputs["spec"])["tiers"]):
            machines = objects(obj(tier["facts"])["machines"])
            assert machines, f"{tier['pool']}: a job could not be judged"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_job_validation_allows_the_stacks_volume_claims(cloud: str) -> None:
    (policy, _) = CLOUDS[cloud]().of(":ValidatingAdmissionPolicy")
    (claims,) = [
        each for each in objects(obj(policy.inputs["spec"])["variables"]) if each["name"] == "claims"
    ]
    listed = json.dumps(["", "checkpoints"] if cloud == "local" else [""])
    assert str(claims["expression"]).startswith(listed), "checkpoints are on a volume on this machine alone"


GPUS = "requests.nvidia.com/gpu"


def namespaces(stack: str) -> list[tuple[StackResource, Json]]:
    """Each ladder of a stack, with what the quota beside it bounds."""
    resources = program(stack)
    bounds = {
        obj(each.props["metadata"])["namespace"]: obj(obj(each.props["spec"])["hard"])
        for each in every(resources, ":ResourceQuota")
    }
    return [
        (each, bounds[obj(each.props["metadata"])["namespace"]])
        for each in every(resources, ":FallbackPolicy")
    ]


@pytest.mark.parametrize("stack", STACKS)
def test_every_namespace_declares_shapes(stack: str) -> None:
    for ladder, _ in namespaces(stack):
        assert ladder_of(ladder).known_shapes, "users start from these files, and the proof is about shapes"


@pytest.mark.parametrize("stack", STACKS)
def test_every_quota_holds_every_gang_and_every_pool_of_the_ladder(stack: str) -> None:
    for ladder, hard in namespaces(stack):
        facts = [obj(tier["facts"]) for tier in objects(obj(ladder.props["spec"])["tiers"])]
        assert int(str(hard[GPUS])) >= sum(gpus_of(pool) for pool in facts), (
            "jobs on all tiers at once, the on-demand one among them, keep their GPUs"
        )
        assert int(str(hard["pods"])) > sum(int(float(str(pool["maxNodes"]))) for pool in facts), (
            "with a pod on every node"
        )
        for shape in ladder_of(ladder).known_shapes:
            assert int(str(hard[GPUS])) >= shape.pods * shape.requests.gpus, f"{shape.title} runs"
            assert int(str(hard["pods"])) >= shape.pods, f"{shape.title} runs"


def gpus_of(facts: Json) -> int:
    """The GPUs that a pool of its smallest machines may have."""
    return int(float(str(facts["maxNodes"])) * float(str(obj(facts["machine"])["gpus"])))


@pytest.mark.parametrize("stack", STACKS)
def test_no_quota_requires_cpu_or_memory_requests(stack: str) -> None:
    for _, hard in namespaces(stack):
        assert hard.keys() == {GPUS, "pods"}, (
            "one of CPUs or memory refuses each pod that requests none of them"
        )


@pytest.mark.parametrize("stack", STACKS)
def test_the_namespace_of_reservations_has_no_quota(stack: str) -> None:
    quotas = every(program(stack), ":ResourceQuota")
    bounded = {str(obj(each.props["metadata"])["namespace"]) for each in quotas}
    assert quotas, "training namespaces have theirs"
    assert RESERVATION_NAMESPACE not in bounded, "placeholders would count twice what the job has already"


def test_missing_fields_of_a_shape_have_the_smallest_values() -> None:
    (shape,) = shapes_after({"name": "fit"})
    assert shape.title == "shape fit (a pod of 1 CPU, 2 GiB)", "as the policies take it where nothing is said"


def test_amounts_may_be_numbers_or_text() -> None:
    first, second = shapes_after(
        {"name": "a", "cpu": 1.5, "memory": "1.5Gi"}, {"name": "b", "cpu": "1500m", "memory": "1536Mi"}
    )
    assert first.requests == second.requests, "a number, a text, a part"


def shapes_after(*shapes: Json) -> tuple[Shape, ...]:
    """The shapes of a namespace that declares these."""
    document = platform_document(lambda d: entry(d, "namespaces", 0).update(shapes=list(shapes)))
    return read(document).namespaces[0].as_shapes()
