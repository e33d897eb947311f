"""The long run of the state machine's model."""

import pytest

from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.soak import model as long_run


def test_progress_names_steps_jobs_and_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_run, "JOBS_OF_A_PART", 3)
    said: list[str] = []
    assert long_run.model(7, steps=60, report=said.append) >= 60
    assert "seeds 7 to " in said[-1]
    assert "of 60 steps" in said[-1]


def test_a_violated_invariant_ends_the_run_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def finds_one(*_: object, **__: object) -> None:
        raise AssertionError("two gangs of one job are alive together")

    monkeypatch.setattr(long_run, "run_state_machine_as_test", finds_one)
    with pytest.raises(
        RehearsalError, match="is violated, seed 3: run it again with --seed 3 --steps 1: two gangs"
    ):
        long_run.model(3, steps=10, report=lambda _: None)
