"""Programs with one fault each, of the kinds that a definition, or a job that no ladder moves, decides."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, EXCLUSIVE_TOPOLOGY
from pulumi_holdfast.program.resources import StackResource, Value
from pulumi_holdfast.program.unjudged import unjudged
from rule import PACK_DEFAULTS
from rules.verdicts import Word, verdicts
from tests.support.builders.program_jobs import (
    JOB_SET,
    RAY_JOB,
    cpu_pool,
    declared_jobset,
    job_program,
    requesting,
)
from tests.support.builders.stack_resources import resource
from tests.support.builders.training_jobs import pod_template

PLACED: Mapping[str, Value] = {"name": "train", "namespace": "vision"}


def job(kind: str, spec: Value) -> StackResource:
    return resource(kind, "train", {"metadata": PLACED, **({} if spec is None else {"spec": spec})})


def beside(kind: str, spec: Value) -> StackResource:
    return resource(f"kubernetes:core/v1:{kind}", "bounds", {"metadata": PLACED, "spec": spec})


def with_parallelism(value: Value) -> StackResource:
    child: Value = {"template": {"spec": {"parallelism": value, "template": pod_template()}}, "name": "w"}
    return job(JOB_SET, {"replicatedJobs": [child]})


def apart_by(key: str) -> StackResource:
    template = pod_template({CAPACITY_TYPE: "spot"}, spec={"containers": [requesting(cpu="1", memory="1Gi")]})
    child: Value = {"name": "w", "replicas": 2, "template": {"spec": {"template": template}}}
    metadata: Value = {**PLACED, "annotations": {EXCLUSIVE_TOPOLOGY: key}}
    return resource(JOB_SET, "train", {"metadata": metadata, "spec": {"replicatedJobs": [child]}})


HEAD: Value = {
    "headGroupSpec": {
        "template": pod_template({CAPACITY_TYPE: "spot"}, spec={"containers": [requesting(cpu="1")]})
    }
}
BROKEN: Mapping[str, tuple[StackResource, str]] = {
    "a number as a text": (with_parallelism("2"), '`spec.replicatedJobs.template.spec.parallelism` is "2"'),
    "an amount with a space": (declared_jobset({"containers": [requesting(memory="8 Gi")]}), '.memory` is "8 Gi"'),
    "a name in capitals": (declared_jobset({}, metadata={"name": "Train_1"}), '`metadata.name` is "Train_1"'),
    "a quota": (beside("ResourceQuota", {"hard": {"pods": "many"}}), '`spec.hard.pods` is "many"'),
    "a limit": (beside("LimitRange", {"limits": [{"max": {"memory": "1 TiB"}}]}), '`spec.limits.max.memory` is "1 TiB"'),
    "a JobSet without spec": (job(JOB_SET, None), "the job has no pod template"),
    "a RayJob without cluster": (job(RAY_JOB, {"entrypoint": "train"}), "the job has no pod template"),
    "a domain that a tier has once": (apart_by("karpenter.sh/nodepool"), "needs a value of karpenter.sh/nodepool for itself"),
}  # fmt: skip


def said(program: Sequence[StackResource]) -> tuple[Word, str]:
    (found,) = verdicts(program, PACK_DEFAULTS)
    return found.word, str(found)


@pytest.mark.parametrize("fault", BROKEN)
def test_program_with_a_fault_is_broken_and_the_fault_is_named(fault: str) -> None:
    faulty, reason = BROKEN[fault]
    word, text = said(job_program(faulty))
    assert word is Word.BROKEN
    assert reason in text


@pytest.mark.parametrize(
    "sound",
    [
        with_parallelism(2.0),
        declared_jobset({}),
        beside("ResourceQuota", {"hard": {"pods": "9", "requests.cpu": 90.0}}),
        beside("LimitRange", {"limits": [{"type": "Container", "max": {"memory": "1Ti"}}]}),
    ],
)
def test_program_without_the_fault_is_not_broken(sound: StackResource) -> None:
    assert said(job_program(sound))[0] is not Word.BROKEN


@pytest.mark.parametrize(("bound", "amount"), [("max", {"cpu": 2}), ("min", {"memory": "16Gi"})])
def test_job_with_a_container_that_a_limit_range_refuses_is_named(bound: str, amount: Json) -> None:
    limits: Json = {"limits": [{"type": "Container", bound: amount}]}
    word, text = said(job_program(declared_jobset({}), beside("LimitRange", limits)))
    assert word is Word.NOT_JUDGED
    assert f"LimitRange train a {bound} of {next(iter(amount.values()))}" in text


def test_rayjob_with_only_its_head_on_spot_is_named_as_one_that_nothing_moves() -> None:
    word, text = said(job_program(job(RAY_JOB, {"backoffLimit": 5, "rayClusterSpec": HEAD})))
    assert word is Word.ASSUMED
    assert "nothing moves it to on-demand: only its head is on spot" in text


def test_rayjob_on_a_cluster_of_others_is_named() -> None:
    _, text = said(job_program(job(RAY_JOB, {"clusterSelector": {"ray.io/cluster": "shared"}})))
    assert "it cannot be suspended, so it cannot be moved" in text


@pytest.mark.parametrize(
    "volume",
    [
        {"csi": {"driver": "secrets-store.csi.k8s.io", "nodePublishSecretRef": {"name": "creds"}}},
        {"azureFile": {"secretName": "creds", "shareName": "data"}},
    ],
)
def test_secret_of_a_volume_that_the_program_does_not_make_is_named(volume: Json) -> None:
    program = job_program(declared_jobset({"volumes": [{"name": "data", **volume}]}))
    assert [each.what for each in unjudged(program)] == ["Secret 'creds'"]


def test_pool_with_a_value_that_its_definition_refuses_is_broken() -> None:
    broken = cpu_pool("cpu", "on-demand", terminationGracePeriod="2 hours")
    program = [broken if each.urn == broken.urn else replace(each) for each in job_program()]
    word, text = said(program)
    assert word is Word.BROKEN
    assert '`spec.template.spec.terminationGracePeriod` is "2 hours"' in text
    assert "such as 10m" in text
