"""`python -m tests.soak model`: takes the simulated job of the state machine's test through many steps, and prints progress."""

import time
from collections.abc import Callable
from typing import Final

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.output import say
from tests.unit.controller.state_machine.test_state_machine import LadderMachine

#: Of one job; longer sequences find little that these do not, and shrink slowly.
STEPS_OF_A_JOB: Final = 40
#: A part draws with a seed of its own, so that a violation is found again within seconds.
JOBS_OF_A_PART: Final = 250


def model(first: int, *, steps: int, report: Callable[[str], None] = say) -> int:
    """Take jobs through at least `steps` steps, with the seeds from `first` on; return how many were taken.

    Raises RehearsalError with the seed, the violated invariant and the shortest sequence of steps that violates it.
    """
    taken, jobs, number, started, said = 0, 0, first, time.monotonic(), 0
    while taken < steps:
        part = _part(number)
        taken, jobs, number = taken + part[0], jobs + part[1], number + 1
        if taken * 20 // steps > said or taken >= steps:
            said = taken * 20 // steps
            speed = taken / (time.monotonic() - started)
            report(
                f"{taken:,} of {steps:,} steps of {jobs:,} jobs, seeds {first} to {number - 1}: no invariant is violated "
                f"({speed:,.0f} steps per second)"
            )
    return taken


def _part(number: int) -> tuple[int, int]:
    """Draw the jobs of one seed; return the steps taken and the jobs."""
    steps = jobs = 0

    class CountedMachine(LadderMachine):
        def __init__(self) -> None:
            super().__init__()
            nonlocal jobs
            jobs += 1

        @invariant()
        def step_is_counted(self) -> None:
            nonlocal steps
            steps += 1

    drawn = settings(
        max_examples=JOBS_OF_A_PART,
        stateful_step_count=STEPS_OF_A_JOB,
        deadline=None,
        database=None,
        derandomize=False,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    )
    try:
        run_state_machine_as_test(seed(number)(CountedMachine), settings=drawn)
    except Exception as error:
        found = "; ".join([str(error), *getattr(error, "__notes__", [])])
        raise RehearsalError(
            f"an invariant of the state machine is violated, seed {number}: run it again with --seed {number} --steps 1: {found}"
        ) from error
    return steps, jobs
