"""The status of FallbackPolicies, and the tasks that write it."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from pulumi_holdfast.controller.jobs.cached_objects import CachedPolicy
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import JobState, Pace, Phase, PoolUse
from pulumi_holdfast.controller.kube.client import FALLBACK_POLICY, ApiError, Client, Unreachable
from pulumi_holdfast.controller.loop.policy_status import (
    DebouncedTask,
    JobIndex,
    JobPosition,
    PolicyStatusWriter,
    policy_status,
)
from pulumi_holdfast.ladder.fallback_policy import STATUS
from pulumi_holdfast.ladder.json import Json, sequence
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy, Tier
from tests.support.builders.caches import training_caches
from tests.support.builders.fallback_objects import NAMESPACE, NOW
from tests.support.clusters.reconciler import policy
from tests.support.coroutines import virtually
from tests.support.fakes.api_server import FakeApi, Sent
from tests.support.json_objects import obj


@virtually
async def test_a_debounced_task_runs_once_for_several_requests() -> None:
    done: list[float] = []

    async def do() -> None:
        done.append(asyncio.get_running_loop().time())

    task_under_test = DebouncedTask("sweeping", do, seconds=3)
    task = asyncio.create_task(task_under_test.run())
    for _ in range(10):
        task_under_test.request()
        await asyncio.sleep(0.1)
    await asyncio.sleep(10)
    assert len(done) == 1
    task_under_test.request()
    await asyncio.sleep(5)
    assert len(done) == 2
    task.cancel()


@virtually
async def test_a_failed_debounced_task_is_retried_with_backoff() -> None:
    tries: list[float] = []

    async def do() -> None:
        tries.append(asyncio.get_running_loop().time())
        if len(tries) < 5:
            raise Unreachable("server", "gone")

    task_under_test = DebouncedTask("sweeping", do, seconds=1)
    task = asyncio.create_task(task_under_test.run())
    task_under_test.request()
    await asyncio.sleep(200)
    assert len(tries) == 5
    assert tries[4] - tries[3] > tries[1] - tries[0]
    task.cancel()


class StatusFixture:
    """A FallbackPolicy on an API server in memory, and what keeps its status."""

    def __init__(self) -> None:
        self.api, self.caches = FakeApi(), training_caches(NAMESPACE, "another")
        self.job_index = JobIndex(lambda namespace: self.summaries.changed(namespace))
        self.summaries = PolicyStatusWriter(Client(self.api), self.caches, self.job_index, now=lambda: NOW)

    async def put(self, within: str = NAMESPACE) -> None:
        """Put the policy of a namespace there."""
        self.caches.policies.put(await self.api.put(FALLBACK_POLICY, policy(within=within)))

    def patches(self) -> int:
        """How often its status was written."""
        return sum(each.method == "PATCH" for each in self.api.sent)


@virtually
async def test_a_status_is_written_only_when_it_differs() -> None:
    fixture = StatusFixture()
    await fixture.put()
    key = JobKey("JobSet", NAMESPACE, "train")
    fixture.job_index.set(key, JobState(uid="u", phase=Phase.RUNNING, pool="spot-a", rank=0, since=NOW))
    await fixture.summaries.write()
    assert fixture.patches() == 1
    fixture.caches.policies.put(fixture.api.of(FALLBACK_POLICY)[0])
    kept: CachedPolicy | None = fixture.caches.policies.get(NAMESPACE, "ladder")
    assert kept is not None
    assert kept.status["summary"] == "1 running"
    fixture.summaries.changed(NAMESPACE)
    await fixture.summaries.write()
    assert fixture.patches() == 1


@virtually
async def test_a_failed_status_write_is_retried() -> None:
    fixture = StatusFixture()
    await fixture.put()
    fixture.summaries.changed(NAMESPACE)

    def refuse(_: object) -> None:
        raise ApiError(500, "InternalError", "no")

    fixture.api.fail = refuse
    try:
        await fixture.summaries.write()
    except ApiError:
        fixture.api.fail = lambda _: None
    await fixture.summaries.write()
    assert fixture.api.of(FALLBACK_POLICY)[0]["status"]


@virtually
async def test_a_status_that_is_rejected_keeps_no_other_from_being_written() -> None:
    fixture = StatusFixture()
    await fixture.put()
    await fixture.put("another")
    for namespace in (NAMESPACE, "another"):
        fixture.summaries.changed(namespace)

    def refuse(sent: Sent) -> None:
        if sent.method == "PATCH" and "/another/" in sent.path:
            raise ApiError(422, "Invalid", "no")

    fixture.api.fail = refuse
    with pytest.raises(ApiError):
        await fixture.summaries.write()
    written = [each["metadata"]["namespace"] for each in fixture.api.of(FALLBACK_POLICY) if "status" in each]
    assert written == [NAMESPACE]


@virtually
async def test_a_namespace_without_a_ladder_has_no_status() -> None:
    fixture = StatusFixture()
    fixture.summaries.changed("nowhere")
    await fixture.summaries.write()
    assert fixture.patches() == 0


POLICY = Policy(tiers=(Tier(pool="spot"), Tier(pool="on-demand")))


def place(pool: str, phase: Phase) -> JobPosition:
    """Where a job is."""
    return JobPosition(pool=pool, phase=phase)


def test_jobs_are_counted_by_tier_and_moving_ones_separately() -> None:
    places = [
        place("spot", Phase.RUNNING),
        place("spot", Phase.WAITING),
        place("on-demand", Phase.SUSPENDING),
        place("on-demand", Phase.STOPPED),
    ]
    status = policy_status(POLICY, 3, places, before={}, now=NOW)
    assert status == {
        "observedGeneration": 3,
        "summary": "1 running, 1 waiting, 1 moving, 1 stopped",
        "jobs": 4,
        "moving": 1,
        "tiers": [
            {"pool": "spot", "jobs": 2, "waiting": 1, "nodeHours": 0, "cost": ""},
            {"pool": "on-demand", "jobs": 1, "waiting": 0, "nodeHours": 0, "cost": ""},
        ],
        "problems": [],
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Followed",
                "message": "",
                "observedGeneration": 3,
                "lastTransitionTime": NOW.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        ],
    }


def test_a_policy_status_has_every_field_problems_and_a_summary() -> None:
    status = policy_status(NoPolicy(problems=("x" * 2000,) * 20), 1, [], before={}, now=NOW)
    assert str(status["summary"]).startswith("Invalid: ")
    assert len(str(status["summary"])) == 512
    problems = [str(each) for each in sequence(status["problems"])]
    assert (len(problems), len(problems[0])) == (16, 1024), "as many and as long as it takes"
    assert policy_status(POLICY, 1, [], before={}, now=NOW)["summary"] == "No jobs", (
        "0 running would be a question"
    )
    fields = {each.name for each in STATUS.fields}
    assert set(policy_status(POLICY, 1, [], before={}, now=NOW)) == fields, (
        "a merge patch leaves nothing of an older one"
    )


def test_a_policy_status_sums_what_its_jobs_have_used() -> None:
    use = PoolUse(pool="spot", node_time=timedelta(hours=3, minutes=50), cost=7.504)
    status = policy_status(
        POLICY, 1, [JobPosition(pool="on-demand", phase=Phase.RUNNING, uses=(use,))] * 2, before={}, now=NOW
    )
    spot, last = (obj(each) for each in sequence(status["tiers"]))
    assert (spot["nodeHours"], spot["cost"]) == (7, "15.01")
    assert (last["nodeHours"], last["cost"]) == (0, "")


def test_a_ladder_is_ready_since_it_was_followed() -> None:
    def ready(policy: Policy | NoPolicy, before: Json, now: datetime) -> Json:
        return obj(sequence(policy_status(policy, 1, [], before=before, now=now)["conditions"])[0])

    first = ready(POLICY, {}, NOW)
    later = NOW + timedelta(hours=1)
    assert ready(POLICY, {"conditions": [first]}, later) == first
    broken = ready(NoPolicy(problems=("spec.tiers: got no tier",)), {"conditions": [first]}, later)
    assert (broken["status"], broken["reason"]) == ("False", "Invalid")
    assert broken["message"] == "spec.tiers: got no tier"
    assert broken["lastTransitionTime"] != first["lastTransitionTime"]


def test_the_job_index_reports_changes_of_positions() -> None:
    changed: list[str] = []
    job_index, key = JobIndex(changed.append), JobKey("JobSet", "vision", "train")
    state = JobState(uid="u", phase=Phase.WAITING, pool="spot", rank=0, since=NOW)
    job_index.set(key, state)
    job_index.set(key, state)
    assert changed == ["vision"]
    assert list(job_index.counts()) == [(("vision", "spot", "Waiting"), 1)]
    job_index.set(key, replace(state, pace=Pace(is_late=True)))
    assert list(job_index.late()) == [(("vision", "spot"), 1)]
    assert len(changed) == 2
    job_index.set(key, JobState(uid="u", phase=Phase.FINISHED, pool="spot", rank=0, since=NOW))
    assert job_index.in_namespace("vision") == []
    assert changed == ["vision"] * 3
    job_index.set(key, None)
    assert len(changed) == 3
