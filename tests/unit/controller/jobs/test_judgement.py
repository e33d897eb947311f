"""The judgement of a job: what the API server says of its Jobs and pods, and its walk down the ladder."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings

from pulumi_holdfast.controller.jobs.judgement import (
    MOST_TEMPLATES,
    NotAnswered,
    Verdict,
    digest_of,
    judge,
    left_on_spot,
)
from pulumi_holdfast.controller.jobs.state import LONGEST_REFUSAL
from pulumi_holdfast.controller.kube.client import ApiError, Kind, Unreachable
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, FOLLOWS, GKE_SPOT, POOL, RESERVED_FOR, SPOT
from pulumi_holdfast.ladder.reachability.facts import TierFacts, read_tiers
from pulumi_holdfast.ladder.reachability.walk import Outcome
from tests.support.builders.fallback_objects import jobset, pod_spec, rayjob, replicated_job
from tests.support.coroutines import virtually
from tests.support.json_objects import obj
from tests.support.strategies.extreme_objects import damaged


def ladder(*, last: str = "on-demand", cpu: str = "8", labels: Json | None = None) -> tuple[TierFacts, ...]:
    machine: Json = {"name": "m7i", "cpu": cpu, "memory": "32Gi", "gpus": 0}

    def facts(capacity: str) -> Json:
        return {
            "capacity": capacity,
            "machines": [machine],
            "maxNodes": 8,
            "labels": labels or {"team": "vision"},
        }

    return read_tiers(
        {
            "spec": {
                "tiers": [
                    {"pool": "spot-a", "maxFailures": 3, "procurementTimeout": "15m", "facts": facts("spot")},
                    {"pool": "on-demand", "facts": facts(last)},
                ]
            }
        }
    )


WRITTEN: list[Json] = [
    {
        "pool": "spot-a",
        "maxFailures": 3,
        "procurementTimeout": "15m",
        "facts": {
            "capacity": "spot",
            "labels": {"a": "b"},
            "labelValues": {"c": ["d"]},
            "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
            "machines": [{"name": "m", "cpu": "8", "memory": "32Gi", "devices": {"x.y/z": 1}}],
            "maxNodes": 4,
        },
    },
    {"pool": "on-demand"},
]


@dataclass
class Server:
    """An API server that admits what it is asked about, but what `refuse` says of a kind."""

    refuse: dict[str, Exception] = field(default_factory=dict[str, Exception])
    adds: Json = field(default_factory=dict[str, JsonValue])
    asked: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])

    async def dry_run(self, kind: Kind, made: Json) -> Json:
        self.asked.append((kind.name, made))
        if kind.name in self.refuse:
            raise self.refuse[kind.name]
        if kind.name == "Job":
            return {**made, "metadata": {**obj(made["metadata"]), "uid": "of-the-job"}}
        return {**made, "spec": {**obj(made["spec"]), **self.adds}}

    async def judge(self, job: Json, tiers: Sequence[TierFacts] | None = None) -> Verdict:
        return await judge(job, ladder() if tiers is None else tiers, self.dry_run)


def job(parallelism: int = 2) -> Json:
    return jobset(replicated_job(selector={POOL: "spot-a"}, parallelism=parallelism))


def refused(status: int, message: str) -> ApiError:
    return ApiError(status, "Reason", message)


@virtually
async def test_a_job_without_a_problem_is_asked_about_once_for_each_kind_of_object() -> None:
    server = Server()
    found = await server.judge(job())
    assert found.judgement.problems == found.judgement.not_judged == ()
    assert found.walk is not None
    assert found.walk.outcome is Outcome.ARRIVES
    assert [kind for kind, _ in server.asked] == ["Job", "Pod"]


@virtually
async def test_the_pod_is_that_of_the_job_as_the_server_returns_it() -> None:
    server = Server()
    await server.judge(job())
    labels = obj(obj(server.asked[1][1]["metadata"])["labels"])
    assert labels["batch.kubernetes.io/controller-uid"] == "of-the-job"


@virtually
async def test_templates_that_are_equal_are_asked_about_once_and_others_up_to_a_limit() -> None:
    equal = Server()
    await equal.judge(jobset(*(replicated_job(f"w{at}", selector={POOL: "spot-a"}) for at in range(20))))
    assert len(equal.asked) == 2
    different = Server()
    many = [
        replicated_job(f"w{at}", template=pod_spec({POOL: "spot-a"}, priorityClassName=f"class-{at}"))
        for at in range(MOST_TEMPLATES + 2)
    ]
    found = await different.judge(jobset(*many))
    assert len(different.asked) == 2 * MOST_TEMPLATES
    (named,) = found.judgement.not_judged
    assert f"the template w{MOST_TEMPLATES} and others" in named


@virtually
async def test_of_thousands_of_templates_the_first_are_judged() -> None:
    found = await Server().judge(jobset(*(replicated_job(f"w{at}") for at in range(3000))))
    assert "the templates after the first 128." in found.judgement.not_judged


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("Pod", 'pods "a" is forbidden: violates PodSecurity "baseline:latest": privileged'),
        ("Pod", 'pods "a" is forbidden: error looking up service account vision/x: serviceaccount "x" not found'),
        ("Job", 'Job.batch "a" is invalid: spec.template.spec.restartPolicy: Unsupported value: "Always"'),
        ("Pod", "exceeded quota: compute, requested: cpu=64, used: cpu=0, limited: cpu=8"),
        ("Pod", "failed quota: compute: must specify limits.cpu for: train"),
        ("Pod", 'admission webhook "guard.example.com" denied the request: no'),
    ],
)  # fmt: skip
@virtually
async def test_what_the_server_refuses_is_a_problem_in_its_words(kind: str, message: str) -> None:
    found = await Server({kind: refused(403, message)}).judge(job())
    (problem,) = found.judgement.problems
    assert message in problem
    assert "of worker: " in problem
    assert found.is_refused


@pytest.mark.parametrize(
    "message",
    [
        'admission webhook "w.example.com" does not support dry run',
        'pods is forbidden: User "u" cannot create resource "pods" in API group ""',
        "exceeded quota: compute, requested: cpu=4,pods=1, used: cpu=8,pods=3, limited: cpu=8,pods=9",
    ],
)
@virtually
async def test_what_the_server_does_not_decide_is_not_judged(message: str) -> None:
    found = await Server({"Pod": refused(403, message)}).judge(job())
    assert found.judgement.problems == ()
    (named,) = found.judgement.not_judged
    assert message in named
    assert not found.is_refused


@virtually
async def test_an_object_that_exists_could_be_created() -> None:
    found = await Server({"Job": refused(409, 'jobs "a" already exists')}).judge(job())
    assert found.judgement.problems == found.judgement.not_judged == ()


@pytest.mark.parametrize(
    "error", [refused(429, "slow down"), refused(500, "failed calling webhook"), refused(401, "no")]
)
@virtually
async def test_a_server_that_cannot_answer_now_is_asked_later(error: ApiError) -> None:
    with pytest.raises(NotAnswered):
        await Server({"Job": error}).judge(job())


@virtually
async def test_an_unreachable_server_is_no_verdict() -> None:
    with pytest.raises(Unreachable):
        await Server({"Pod": Unreachable("server", "gone")}).judge(job())


@virtually
async def test_the_walk_goes_by_the_pod_that_the_server_admits() -> None:
    sidecar: Json = {"name": "injected", "resources": {"requests": {"cpu": "9"}}}
    found = await Server(adds={"containers": [sidecar]}).judge(job())
    (problem,) = found.judgement.problems
    assert "9 CPU" in problem
    assert "tier 2 → pool on-demand" in problem


@virtually
async def test_a_ladder_that_ends_on_spot_is_a_problem_with_its_fix() -> None:
    found = await Server().judge(job(), ladder(last="spot"))
    (problem,) = found.judgement.problems
    assert "Append a tier with an on-demand pool" in problem
    assert not found.is_refused


TAINT: Json = {"key": "team", "value": "nlp", "effect": "NoSchedule"}


def tainted(*tiers: TierFacts) -> tuple[TierFacts, ...]:
    """The tiers, the last of which has a taint that the FallbackPolicy lists."""
    facts: Json = {"capacity": "on-demand", "labels": {"team": "vision"}, "taints": [TAINT]}
    (last,) = read_tiers({"spec": {"tiers": [{"pool": "on-demand", "facts": facts}]}})
    return (*tiers[:-1], replace(tiers[-1], node_pools=last.node_pools))


@virtually
async def test_a_taint_of_a_lower_tier_is_refused_unless_admission_adds_the_toleration_there() -> None:
    server = Server()
    found = await server.judge(job(), tainted(*ladder()))
    (problem,) = found.judgement.problems
    assert "tier 2 → pool on-demand: taint team=nlp:NoSchedule is not tolerated" in problem
    asked = [obj(obj(made["spec"])["nodeSelector"])[POOL] for kind, made in server.asked if kind == "Pod"]
    assert asked == ["spot-a", "on-demand"]
    tolerating = Server(adds={"tolerations": [{**TAINT, "operator": "Equal"}]})
    assert (await tolerating.judge(job(), tainted(*ladder()))).judgement.problems == ()
    assert len(tolerating.asked) == 2
    assert (await judge(job(), tainted(*ladder()), None)).judgement.problems == ()


@virtually
async def test_a_job_without_pods_cannot_run() -> None:
    nothing: Json = {}
    for without in ({"spec": nothing}, {"spec": None}):
        found = await Server().judge({**jobset(), **without})
        assert "no pod template" in found.judgement.problems[0]


@virtually
async def test_exclusive_topology_over_a_label_with_one_value_in_a_tier_is_refused() -> None:
    one = replicated_job(selector={POOL: "spot-a"}, replicas=2, parallelism=2)
    exclusive: Json = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
    whole = jobset(one)
    annotated = {**whole, "metadata": {**obj(whole["metadata"]), "annotations": exclusive}}
    found = await Server().judge(annotated)
    assert "exclusive-topology" in found.judgement.problems[0]
    alone = jobset(replicated_job(selector={POOL: "spot-a"}, replicas=1, parallelism=2))
    single = {**alone, "metadata": {**obj(alone["metadata"]), "annotations": exclusive}}
    assert (await Server().judge(single)).judgement.problems == ()


def test_a_judgement_outlives_a_suspension_and_a_move_and_no_other_change() -> None:
    before = digest_of(job(), "tiers")
    spec = obj(job()["spec"])
    assert digest_of({**job(), "spec": {**spec, "suspend": True}}, "tiers") == before
    reserved = pod_spec(
        {POOL: "on-demand"}, tolerations=[{"key": RESERVED_FOR, "operator": "Equal", "value": "u"}]
    )
    moved = jobset(replicated_job(template=reserved))
    assert digest_of(moved, "tiers") == digest_of(jobset(replicated_job(template=pod_spec({}))), "tiers")
    assert digest_of(job(), "other tiers") != before
    assert digest_of(job(parallelism=3), "tiers") != before
    assert digest_of({**job(), "metadata": {**obj(job()["metadata"]), "uid": "other"}}, "tiers") != before


def unfollowed(made: Json, **labels: str) -> Json:
    return {**made, "metadata": {**obj(made["metadata"]), "labels": labels}}


def test_a_job_on_spot_that_follows_no_ladder_is_named_with_the_reason() -> None:
    spot = jobset(replicated_job(selector={GKE_SPOT: "true"}))
    assert "Nothing moves it to on-demand" in left_on_spot(unfollowed(spot), ladder())
    assert left_on_spot(unfollowed(spot, **{FOLLOWS: "false"}), ladder()) == ""
    assert left_on_spot(unfollowed(spot, **{"kueue.x-k8s.io/queue-name": "q"}), ladder()) == ""
    assert left_on_spot(unfollowed(jobset(replicated_job())), ladder()) == ""


def test_a_rayjob_whose_head_alone_is_on_spot_or_that_cannot_be_suspended_is_named() -> None:
    made = rayjob()
    cluster = obj(obj(made["spec"])["rayClusterSpec"])
    head: Json = {"rayStartParams": {}, "template": {"spec": pod_spec({CAPACITY_TYPE: SPOT})}}
    alone: Json = {"rayClusterSpec": {**cluster, "headGroupSpec": head, "workerGroupSpecs": list[Json]()}}
    only_head = {**made, "spec": alone}
    assert "only its head is on spot" in left_on_spot(unfollowed(only_head), ladder())
    workers: Json = {
        "groupName": "w",
        "replicas": 1,
        "maxReplicas": 1,
        "template": {"spec": pod_spec({GKE_SPOT: "true"})},
    }
    kept: Json = {"onSuccess": {"policy": "DeleteNone"}, "onFailure": {"policy": "DeleteCluster"}}
    for strategy, kept_by in (
        ({"deletionRules": [{"policy": "DeleteCluster"}]}, "deletionRules"),
        (kept, "onSuccess.policy: DeleteNone"),
    ):
        ruled = {
            **made,
            "spec": {
                "deletionStrategy": strategy,
                "rayClusterSpec": {**cluster, "workerGroupSpecs": [workers]},
            },
        }
        said = left_on_spot(unfollowed(ruled), ladder())
        assert f"Remove `deletionStrategy.{kept_by}`." in said


@settings(max_examples=200, deadline=None)
@given(made=damaged(jobset()) | damaged(rayjob()), policy=damaged({"spec": {"tiers": WRITTEN}}))
def test_jobs_and_ladders_of_any_shape_are_judged_without_an_error(made: Json, policy: Json) -> None:
    tiers = read_tiers(policy)
    assert digest_of(made, "tiers")
    assert isinstance(left_on_spot(made, tiers), str)
    found = asyncio.run(Server().judge(made, tiers))
    assert len(found.judgement.refusal) <= LONGEST_REFUSAL
