"""The command line."""

import pytest

from holdfast.rehearsal.cli.arguments import parse
from holdfast.simulator.errors import RehearsalError
from tests.soak.seeds import seed_of


def test_a_command_names_its_stack() -> None:
    asked = parse(["up", "local"])
    assert (asked.command, asked.stack) == ("up", "local"), "not what was asked for"


def test_down_is_gentle_unless_forced() -> None:
    assert not parse(["down", "local"]).force, "nothing is dropped by default"
    assert parse(["down", "local", "--force"]).force, "the flag does nothing"


def test_a_crash_takes_a_sample_unless_told_to_take_every_resource() -> None:
    assert parse(["crash", "local"]).sample == 3, "every resource takes an hour"
    assert parse(["crash", "local", "--every"]).sample is None, (
        "a sample was taken of what should be everything"
    )
    assert parse(["crash", "local", "--sample", "5", "--seed", "7"]).seed == 7, "the seed is not heeded"


def test_bench_needs_no_stack() -> None:
    asked = parse(["bench"])
    assert (asked.stack, asked.repetitions) == ("local", 3), "`make bench` names none"


def test_a_part_of_the_bench_can_be_run_alone() -> None:
    assert parse(["bench", "--policies-only"]).policies_only, "the flag does nothing"
    assert not parse(["bench"]).policies_only, "`make bench` measures everything"


def test_a_fault_run_and_its_size_are_asked_for_by_numbers() -> None:
    asked = parse(["chaos", "--seed", "7", "--jobs", "20", "--rounds", "3"])
    assert (asked.stack, asked.seed, asked.jobs, asked.rounds) == ("local", 7, 20, 3), "as asked"
    assert parse(["chaos"]).jobs == 200, "hundreds, unless told otherwise"


@pytest.mark.parametrize("wrong", [["up"], ["fly", "local"], ["crash", "local", "--sample", "0"], []])
def test_a_command_line_that_is_not_understood_ends_with_code_2(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(wrong)
    assert ended.value.code == 2, "a shell must be able to tell"
    assert "usage" in capsys.readouterr().err, "the user is not told what is possible"


def test_the_flag_decides_over_the_variable_and_the_variable_over_chance() -> None:
    assert seed_of(7, "8") == 7, "the flag was given for this run"
    assert seed_of(None, "8") == 8, "the variable was not heeded"
    assert 0 <= seed_of(None, None) < 1_000_000, "a drawn seed must be typed again"


def test_a_seed_that_is_no_number_is_refused() -> None:
    with pytest.raises(RehearsalError, match="HOLDFAST_SEED is 'x'"):
        seed_of(None, "x")
