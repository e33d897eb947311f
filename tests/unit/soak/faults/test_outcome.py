"""What a fault run says of itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from holdfast.fallback.policy.policy import Policy, PolicyTier
from tests.soak.faults.invariants import check_records
from tests.soak.faults.observations import Record
from tests.support.builders.job_timelines import after, moved

ONE_FAILURE = PolicyTier(pool="spot-a", max_failures=1)
POLICY = Policy(tiers=(ONE_FAILURE, PolicyTier(pool="spot-b")), outage_window=timedelta(seconds=8))
PATIENT = replace(POLICY, tiers=(replace(ONE_FAILURE, max_failures=3), *POLICY.tiers[1:]))
RECORD = Record(
    trace=moved().trace, pods=2, vanished={"n1-0": after(300)}, until=after(200), kills=(after(5),)
)


def test_a_run_in_which_all_went_well_counts_its_jobs_and_tells_of_none() -> None:
    outcome = check_records([RECORD], POLICY, overlaps=(), deaths=1, writes=7)
    assert (outcome.places, outcome.moves, outcome.problems) == ({"spot-b": 1}, 1, ()), (
        "it moved, as it should"
    )
    assert not outcome.seen, "nobody need look into it"


def test_two_gangs_at_once_are_a_problem_of_every_run() -> None:
    (problem,) = check_records([RECORD], POLICY, overlaps=["train"], deaths=0, writes=0).problems
    assert problem == "two gangs at once: train", "whatever the function says of the job"


def test_what_was_seen_of_a_job_that_went_wrong_is_told_in_its_order() -> None:
    outcome = check_records([RECORD], PATIENT, overlaps=(), deaths=0, writes=0)
    assert outcome.problems[0].startswith("train: at 12:01:"), (
        f"three failures were allowed: {outcome.problems}"
    )
    lines = outcome.seen["train"].splitlines()
    assert lines == sorted(lines), "first to last"
    told = outcome.seen["train"]
    for what in (
        "phase=Suspending pool=spot-b",
        "is bound to n1-0",
        "is told to end",
        "n1-0 vanishes",
        "is killed",
    ):
        assert what in told, f"{what}: {told}"
