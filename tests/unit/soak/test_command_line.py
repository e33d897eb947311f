"""The command line of the soak tests."""

import pytest

from holdfast.simulator.errors import RehearsalError
from tests.soak.__main__ import parse
from tests.soak.seeds import seed_of


def test_each_command_has_its_options_and_defaults() -> None:
    assert parse(["crash", "local"]).sample == 3, "every resource takes an hour"
    assert parse(["crash", "local", "--every"]).sample is None, "None means every resource"
    assert parse(["crash", "local", "--sample", "5", "--seed", "7"]).seed == 7, "the seed is passed on"
    parsed = parse(["bench"])
    assert (parsed.stack, parsed.repetitions) == ("local", 3), "`make bench` names no stack"
    assert not parsed.policies_only, "`make bench` measures everything"
    assert parse(["bench", "--policies-only"]).policies_only, "one part can run alone"
    parsed = parse(["faults", "--seed", "7", "--jobs", "20", "--rounds", "3"])
    assert (parsed.stack, parsed.seed, parsed.jobs, parsed.rounds) == ("local", 7, 20, 3), "as given"
    assert parse(["faults"]).jobs == 200, "the default size"
    assert parse(["model"]).steps == 1_000_000, "what a release needs"


@pytest.mark.parametrize("wrong", [["crash"], ["fly", "local"], ["crash", "local", "--sample", "0"], []])
def test_invalid_usage_ends_with_code_2(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(wrong)
    assert ended.value.code == 2, "a shell can tell wrong usage from a failure"
    assert "usage" in capsys.readouterr().err, "the user learns the valid usage"


def test_a_seed_comes_from_the_option_the_variable_or_a_draw() -> None:
    assert seed_of(7, "8") == 7, "the option is for this run"
    assert seed_of(None, "8") == 8, "the variable is used without the option"
    assert 0 <= seed_of(None, None) < 1_000_000, "a drawn seed is short enough to type"
    with pytest.raises(RehearsalError, match="HOLDFAST_SEED is 'x'"):
        seed_of(None, "x")
