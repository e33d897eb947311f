"""The services of every cluster: admission, fallback policies, quotas; their order and their content."""

import json

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import RESERVATION_NAMESPACE
from pulumi_holdfast.ladder.reachability.shape import Shape
from pulumi_holdfast.program.namespaces.ladders import ladder_of
from pulumi_holdfast.program.resources import StackResource
from tests.support.builders.configurations import entry, platform_document, read
from tests.support.builders.policy_programs import STACKS, every, program
from tests.support.clusters.admitted_examples import STACKS as CLOUDS
from tests.support.json_objects import obj, objects

VALIDATIONS = ("training-jobsets-can-fall-back", "training-rayjobs-can-fall-back")


@pytest.mark.parametrize("cloud", CLOUDS)
def test_job_validation_follows_job_admission_and_precedes_namespaces(cloud: str) -> None:
    stack = CLOUDS[cloud]()
    bindings = stack.of(":MutatingAdmissionPolicyBinding")
    job_admission = {each.name for each in bindings if "job-admission" in each.name}
    assert job_admission
    for name in VALIDATIONS:
        earlier = stack.everything_before(
            stack.one(":ValidatingAdmissionPolicy", f"main-job-validation-{name}")
        )
        assert earlier >= job_admission, "validation of unchanged jobs would reject all of them"
        assert "main-fallback-policy" in earlier, "jobs are validated by their ladders"
    for ladder in stack.of(":FallbackPolicy"):
        earlier = stack.everything_before(ladder)
        assert earlier >= {f"main-job-validation-{name}-binding" for name in VALIDATIONS}, (
            "namespaces come after"
        )
        for tier in objects(obj(ladder.inputs["spec"])["tiers"]):
            machines = objects(obj(tier["facts"])["machines"])
            assert machines, f"{tier['pool']}: a job could not be compared with its machines"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_every_stack_limits_what_its_controller_may_write(cloud: str) -> None:
    stack = CLOUDS[cloud]()
    policy = stack.one(":ValidatingAdmissionPolicy", "main-fallback-controller-writes-policy")
    earlier = stack.everything_before(stack.one(":Deployment", "main-fallback-controller-deployment"))
    assert policy.name in earlier, "the controller never runs without it"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_job_validation_allows_jobs_without_a_ladder_and_the_stacks_volume_claims(cloud: str) -> None:
    stack = CLOUDS[cloud]()
    bindings = stack.of(":ValidatingAdmissionPolicyBinding")
    for binding in (each for each in bindings if each.name.startswith("main-job-validation-")):
        reference = obj(obj(binding.inputs["spec"])["paramRef"])
        allowed = {"name": "ladder", "parameterNotFoundAction": "Allow"}
        assert reference == allowed, "a job without a ladder is rejected by admission instead"
    policy = stack.one(":ValidatingAdmissionPolicy", f"main-job-validation-{VALIDATIONS[0]}")
    variables = objects(obj(policy.inputs["spec"])["variables"])
    (claims,) = [each for each in variables if each["name"] == "claims"]
    listed = json.dumps(["", "checkpoints"] if cloud == "local" else [""])
    assert str(claims["expression"]).startswith(listed)


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
def test_every_quota_holds_every_gang_and_every_pool_of_the_ladder(stack: str) -> None:
    for ladder, hard in namespaces(stack):
        assert hard.keys() >= {"requests.cpu", "requests.memory", GPUS, "pods"}, "what pools cost"
        facts = [obj(tier["facts"]) for tier in objects(obj(ladder.props["spec"])["tiers"])]
        nodes = [float(str(pool["maxNodes"])) for pool in facts]
        each_gpus = [float(str(obj(pool["machine"])["gpus"])) for pool in facts]
        gpus = sum(int(many * each) for many, each in zip(nodes, each_gpus, strict=True))
        assert int(str(hard[GPUS])) >= gpus
        assert int(str(hard["pods"])) > sum(map(int, nodes))
        assert ladder_of(ladder).known_shapes
        for shape in ladder_of(ladder).known_shapes:
            assert int(str(hard[GPUS])) >= shape.pods * shape.requests.gpus, f"{shape.title} runs"
            assert int(str(hard["pods"])) >= shape.pods, f"{shape.title} runs"
    quotas = every(program(stack), ":ResourceQuota")
    bounded = {str(obj(each.props["metadata"])["namespace"]) for each in quotas}
    assert quotas
    assert RESERVATION_NAMESPACE not in bounded, "placeholders would count twice what the job has already"


def test_missing_fields_of_a_shape_have_the_smallest_values() -> None:
    (shape,) = shapes_after({"name": "fit"})
    assert shape.title == "shape fit (a pod of 1 CPU, 2 GiB)"


def test_amounts_may_be_numbers_or_text() -> None:
    first, second = shapes_after(
        {"name": "a", "cpu": 1.5, "memory": "1.5Gi"}, {"name": "b", "cpu": "1500m", "memory": "1536Mi"}
    )
    assert first.requests == second.requests


def shapes_after(*shapes: Json) -> tuple[Shape, ...]:
    """The shapes of a namespace that declares these."""
    document = platform_document(lambda d: entry(d, "namespaces", 0).update(shapes=list(shapes)))
    return read(document).namespaces[0].as_shapes()
