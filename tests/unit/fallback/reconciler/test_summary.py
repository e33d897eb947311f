"""A FallbackPolicy's status says how many jobs are where, in one line and in numbers."""

from __future__ import annotations

from holdfast.components.fallback_policy.schema import status_schema
from holdfast.fallback.api.objects import sequence
from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.policy.policy import NoPolicy, Policy, PolicyTier
from holdfast.fallback.reconciler.policy_status import JobIndex, JobPosition, policy_status
from holdfast.fallback.state_machine.state import JobState, Phase
from tests.support.fallback_objects import NOW
from tests.support.json_objects import obj

POLICY = Policy(tiers=(PolicyTier(pool="spot"), PolicyTier(pool="on-demand")))


def place(pool: str, phase: Phase) -> JobPosition:
    """Where a job is."""
    return JobPosition(pool=pool, phase=phase)


def test_jobs_are_counted_on_their_tiers_and_those_between_two_apart() -> None:
    places = [
        place("spot", Phase.RUNNING),
        place("spot", Phase.WAITING),
        place("on-demand", Phase.SUSPENDING),
        place("on-demand", Phase.STOPPED),
    ]
    status = policy_status(POLICY, 3, places)
    assert status == {
        "observedGeneration": 3,
        "summary": "1 running, 1 waiting, 1 moving, 1 stopped",
        "jobs": 4,
        "moving": 1,
        "tiers": [
            {"pool": "spot", "jobs": 2, "waiting": 1},
            {"pool": "on-demand", "jobs": 1, "waiting": 0},
        ],
        "problems": [],
    }, "a job that is bound for a tier is not there yet"


def test_a_ladder_that_cannot_be_followed_says_why() -> None:
    status = policy_status(NoPolicy(problems=("x" * 2000,) * 20), 1, [])
    assert str(status["summary"]).startswith("Cannot be followed: "), "that comes first"
    assert len(str(status["summary"])) == 512, "as long as the definition takes"
    problems = [str(each) for each in sequence(status["problems"])]
    assert (len(problems), len(problems[0])) == (16, 1024), "as many and as long as it takes"


def test_a_ladder_without_jobs_says_so() -> None:
    assert policy_status(POLICY, 1, [])["summary"] == "No job follows it", "0 running would be a question"


def test_the_status_has_every_field_of_the_definition() -> None:
    fields = set(obj(status_schema()["properties"]))
    assert set(policy_status(POLICY, 1, [])) == fields, "a merge patch leaves nothing of an older one"


def test_the_roster_knows_where_everybody_is_and_says_when_that_changes() -> None:
    changed: list[str] = []
    roster, key = JobIndex(changed.append), JobKey("JobSet", "vision", "train")
    state = JobState(uid="u", phase=Phase.WAITING, pool="spot", rank=0, since=NOW)
    roster.set(key, state)
    roster.set(key, state)
    assert changed == ["vision"], "the second look found it where it was"
    assert list(roster.counts()) == [("vision", place("spot", Phase.WAITING), 1)], "for the metrics"
    roster.set(key, JobState(uid="u", phase=Phase.FINISHED, pool="spot", rank=0, since=NOW))
    assert roster.in_namespace("vision") == [], "who has finished is nowhere"
    assert changed == ["vision", "vision"], "which is a change"
    roster.set(key, None)
    assert len(changed) == 2, "and then there is none"
