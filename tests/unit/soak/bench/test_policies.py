"""What the benchmark measures the policy pack on, and its table."""

from holdfast.policies.rule import Level
from holdfast.policies.tables import RULES
from tests.soak.bench.measurement import Measurement
from tests.soak.bench.policy_pack import rows
from tests.soak.bench.policy_program import program, teams
from tests.support.policy_programs import as_resources, reported
from tests.support.recorder import record

_MIB = 1024 * 1024


def test_as_many_resources_are_registered_as_were_asked_for() -> None:
    assert sum(team.resources for team in teams(5_000)) == 5_000, "the figures are said to be of so many"
    assert len(record(lambda: program(130)).resources) == 130, "what does not fill a team is made too"


def test_the_program_has_what_rules_are_about_and_breaks_none() -> None:
    resources = as_resources(record(lambda: program(100)), "bench")
    kinds = {each.type.rpartition(":")[2] for each in resources}
    assert {"NodePool", "FallbackPolicy", "Namespace", "Deployment"} <= kinds, (
        "a rule without work costs nothing"
    )
    mandatory = {rule.name for rule in RULES if rule.level is Level.MANDATORY}
    assert not mandatory & reported(resources).keys(), "a preview that is stopped is no preview"


def test_a_preview_with_the_pack_stands_beside_the_one_without() -> None:
    without, with_pack = (
        Measurement(seconds=each, peak_bytes=100 * _MIB, cpu_seconds=2 * each) for each in (4.0, 5.0)
    )
    assert rows([(100, without, with_pack)])[1] == (
        "100 resources", "4.0 s", "5.0 s", "1.25", "8.0 s", "10.0 s", "1.25", "100 MiB", "100 MiB",
    ), "not the figures measured"  # fmt: skip
