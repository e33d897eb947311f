"""The queue of judgements: each job once for what it and its ladder say, and no error of the API server is a verdict."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from pulumi_holdfast.controller.jobs.cached_objects import CachedPolicy, cached_policy
from pulumi_holdfast.controller.jobs.observation import Judgement
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.kube.client import ApiError, Kind, LeadershipLost, Unreachable
from pulumi_holdfast.controller.loop.judgements import Judgements
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, SPOT
from tests.support.builders.fallback_objects import NAMESPACE, jobset, replicated_job
from tests.support.coroutines import virtually
from tests.support.json_objects import obj

KEY = JobKey("JobSet", NAMESPACE, "train")
TIERS: list[Json] = [{"pool": "spot-a", "maxFailures": 1}, {"pool": "on-demand"}]


def policy(*tiers: Json) -> CachedPolicy:
    metadata: Json = {"name": "ladder", "namespace": NAMESPACE, "uid": "p"}
    return cached_policy({"metadata": metadata, "spec": {"tiers": list(tiers or TIERS)}})


@dataclass
class Fixture:
    """Judgements that run, with an API server whose answers `errors` replaces, one after the other."""

    errors: list[Exception] = field(default_factory=list[Exception])
    always: Exception | None = None
    asked: list[str] = field(default_factory=list[str])
    changed: list[JobKey] = field(default_factory=list[JobKey])

    def __post_init__(self) -> None:
        self.judgements = Judgements(self, self.changed.append)  # type: ignore[arg-type]  # a fake

    async def dry_run(self, kind: Kind, namespace: str | None, obj: Json) -> Json:
        self.asked.append(f"{kind.name} {namespace}")
        await asyncio.sleep(0)
        if self.always is not None:
            raise self.always
        if self.errors:
            raise self.errors.pop(0)
        return obj

    async def during(self, seconds: float, look: Callable[[], object]) -> None:
        task = asyncio.create_task(self.judgements.run())
        look()
        await asyncio.sleep(seconds)
        look()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def of(
        self, job: Json | None = None, under: CachedPolicy | None = None, *, is_new: bool = True
    ) -> Judgement | None:
        return self.judgements.of(KEY, job or jobset(), under or policy(), is_new=is_new)


@virtually
async def test_a_job_is_judged_once_and_then_reconciled() -> None:
    fixture = Fixture()
    assert fixture.of() is None
    await fixture.during(1, fixture.of)
    assert fixture.of() == Judgement()
    assert fixture.changed == [KEY]
    assert fixture.asked == [f"Job {NAMESPACE}", f"Pod {NAMESPACE}"]


@virtually
async def test_a_job_is_judged_again_when_it_or_its_ladder_changes() -> None:
    fixture = Fixture()
    await fixture.during(1, fixture.of)
    suspended = {**jobset(), "spec": {**obj(jobset()["spec"]), "suspend": True}}
    assert fixture.of(suspended) == Judgement()
    assert fixture.of(under=policy({"pool": "spot-a", "maxFailures": 1}, {"pool": "other"})) is None
    assert fixture.of(jobset(replicated_job(parallelism=9))) is None


@virtually
async def test_a_job_of_the_same_generation_is_not_compared_again_but_one_of_another_is() -> None:
    fixture = Fixture()

    def job(generation: int, parallelism: int = 2) -> Json:
        made = jobset(replicated_job(parallelism=parallelism))
        return {**made, "metadata": {**obj(made["metadata"]), "generation": generation}}

    await fixture.during(1, lambda: fixture.of(job(1)))
    assert fixture.of(job(1, parallelism=9)) == Judgement()
    assert fixture.of(job(2)) == Judgement()
    assert fixture.of(job(3, parallelism=9)) is None


@virtually
async def test_pods_that_were_created_before_are_not_asked_about() -> None:
    fixture = Fixture(always=Unreachable("server", "gone"))
    await fixture.during(1, lambda: fixture.of(is_new=False))
    assert fixture.of(is_new=False) == Judgement()
    assert fixture.asked == []


@virtually
async def test_errors_of_the_server_leave_a_job_unjudged_until_it_answers() -> None:
    errors = [
        Unreachable("server", "gone"),
        ApiError(429, "TooManyRequests", "slow down"),
        ApiError(503, "Unavailable", "starting"),
        LeadershipLost(),
        KeyError("a bug"),
    ]
    fixture = Fixture(errors=list(errors))
    await fixture.during(2, fixture.of)
    assert fixture.of() is None
    assert fixture.changed == []
    await fixture.during(300, fixture.of)
    assert fixture.of() == Judgement()


@virtually
async def test_a_server_that_never_answers_is_asked_with_longer_and_longer_waits() -> None:
    fixture = Fixture(always=ApiError(500, "InternalError", "broken"))
    await fixture.during(3600, fixture.of)
    assert fixture.of() is None
    assert len(fixture.asked) < 40


@virtually
async def test_a_refused_job_is_asked_about_again_because_what_is_missing_may_be_created() -> None:
    fixture = Fixture(errors=[ApiError(403, "Forbidden", 'serviceaccount "x" not found')])
    await fixture.during(1, fixture.of)
    refused = fixture.of()
    assert refused is not None
    assert "not found" in refused.refusal
    await fixture.during(60, fixture.of)
    assert fixture.of() == Judgement()
    assert len(fixture.changed) == 2


@virtually
async def test_a_forgotten_job_is_not_judged() -> None:
    fixture = Fixture()

    def look() -> None:
        fixture.of()
        fixture.judgements.forget(KEY)

    await fixture.during(1, look)
    assert (fixture.asked, fixture.changed, len(fixture.judgements)) == ([], [], 0)


def test_a_job_that_does_not_follow_is_judged_at_once_and_asks_nothing() -> None:
    fixture = Fixture()
    beside = jobset(replicated_job(selector={CAPACITY_TYPE: SPOT}), labels={"holdfast.dev/fallback": ""})
    found = fixture.of(beside)
    assert found is not None
    assert "Nothing moves it to on-demand" in found.on_spot
    assert fixture.asked == []


def test_without_a_ladder_nothing_is_judged() -> None:
    fixture = Fixture()
    assert fixture.judgements.of(KEY, jobset(), None, is_new=True) is None
    broken = cached_policy({"metadata": {"name": "ladder"}, "spec": {}})
    assert fixture.judgements.of(KEY, jobset(), broken, is_new=True) is None


@virtually
async def test_the_jobs_of_one_namespace_do_not_delay_another() -> None:
    fixture = Fixture()
    keys = [JobKey("JobSet", "hostile", str(each)) for each in range(100)]

    def queue_all() -> None:
        for key in (*keys, KEY):
            fixture.judgements.of(key, jobset(), policy(), is_new=True)

    await fixture.during(1, queue_all)
    assert KEY in fixture.changed[:2]
