"""What lets jobs fall back, on every cloud: in which order it comes and goes."""

from __future__ import annotations

import json

import pytest

from tests.support.clusters.admitted_examples import STACKS
from tests.support.json_objects import obj, objects

VALIDATIONS = ("training-jobsets-can-fall-back", "training-rayjobs-can-fall-back")


@pytest.mark.parametrize("cloud", STACKS)
def test_jobs_are_judged_after_they_are_mended_and_by_a_kind_that_is_there(cloud: str) -> None:
    stack = STACKS[cloud]()
    mending = {
        each.name for each in stack.of(":MutatingAdmissionPolicyBinding") if "job-admission" in each.name
    }
    assert mending, "jobs are mended"
    for name in VALIDATIONS:
        earlier = stack.everything_before(stack.one(":ValidatingAdmissionPolicy", f"job-validation-{name}"))
        assert earlier >= mending, "judged as they were written, all jobs would be found unable to move"
        assert "fallback-policy-crd" in earlier, "ladders are what they are judged by"


@pytest.mark.parametrize("cloud", STACKS)
def test_namespaces_go_before_what_judges_their_jobs(cloud: str) -> None:
    stack = STACKS[cloud]()
    for ladder in stack.of(":FallbackPolicy"):
        earlier = stack.everything_before(ladder)
        assert earlier >= {f"job-validation-{name}-binding" for name in VALIDATIONS}, "and come after it"


@pytest.mark.parametrize("cloud", STACKS)
def test_no_job_is_refused_for_a_ladder_that_is_not_written_yet(cloud: str) -> None:
    for binding in STACKS[cloud]().of(":ValidatingAdmissionPolicyBinding"):
        reference = obj(obj(binding.inputs["spec"])["paramRef"])
        assert reference == {"name": "ladder", "parameterNotFoundAction": "Allow"}, (
            "what comes before its ladder is admission's to refuse, which would have mended it"
        )


@pytest.mark.parametrize("cloud", STACKS)
def test_ladders_say_what_pods_get_of_their_machines(cloud: str) -> None:
    for ladder in STACKS[cloud]().of(":FallbackPolicy"):
        for tier in objects(obj(ladder.inputs["spec"])["tiers"]):
            machines = objects(obj(tier["facts"])["machines"])
            assert machines, f"{tier['pool']}: a job could not be judged"


@pytest.mark.parametrize("cloud", STACKS)
def test_the_stacks_own_claims_may_be_mounted(cloud: str) -> None:
    (policy, _) = STACKS[cloud]().of(":ValidatingAdmissionPolicy")
    (claims,) = [
        each for each in objects(obj(policy.inputs["spec"])["variables"]) if each["name"] == "claims"
    ]
    listed = json.dumps(["", "checkpoints"] if cloud == "local" else [""])
    assert str(claims["expression"]).startswith(listed), "checkpoints are on a volume on this machine alone"
