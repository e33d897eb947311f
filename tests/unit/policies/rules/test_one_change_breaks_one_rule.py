from collections.abc import Callable, Sequence
from functools import cache

import pytest

from pack import RULES
from pulumi_holdfast.program.resources import StackResource
from rule import Level
from tests.support.builders.policy_changes import CHANGES, Change
from tests.support.builders.policy_programs import STACKS, VERDICTS, findings, previewed, program, reported

#: A change that breaks a mandatory rule may also cause advice, but not the other way round.
ADVICE = {rule.name for rule in RULES if (rule.strict or rule.level) is Level.ADVISORY}
#: A gang that fits on no pool exceeds its quota, too, and a tier that is never left has no time limit.
ALONGSIDE = {"training-reaches-on-demand": {"training-namespaces-have-quotas", "training-ladder-leaves-spot"}}
#: As in the profile `strict`: a pool that an own stack does not make is missing.
ALL_HERE = {"madeHere": ["pools"]}
CASES = [(change, stack) for change in CHANGES for stack in change.stacks]


@cache
def unbroken(stack: str) -> dict[str, list[str]]:
    return reported(program(stack), **ALL_HERE)


def broken(stack: str, change: Change) -> dict[str, list[str]]:
    resources = program(stack)
    change.apply(resources)
    return reported(resources, **ALL_HERE)


@pytest.mark.parametrize("stack", STACKS)
def test_own_stacks_break_no_mandatory_rule(stack: str):
    assert set(unbroken(stack)) <= ADVICE


@pytest.mark.parametrize("shown", [program, previewed], ids=["update", "first preview"])
@pytest.mark.parametrize("stack", STACKS)
def test_own_stacks_are_proved(stack: str, shown: Callable[[str], Sequence[StackResource]]):
    (summary, *others) = [each.message for each in findings(shown(stack))[VERDICTS]]
    words = {each.split("\n")[0].rpartition(": ")[2] for each in (summary, *others)}
    assert words == {"proved"}


def test_every_rule_has_cases_on_every_cloud():
    assert len(CASES) >= 150


def test_every_mandatory_rule_is_broken_by_a_change():
    assert {rule.name for rule in RULES} - {change.rule for change in CHANGES} <= ADVICE


@pytest.mark.parametrize(
    ("change", "stack"), CASES, ids=[f"{stack}: {change.what}" for change, stack in CASES]
)
def test_change_breaks_its_rule_and_no_other(change: Change, stack: str):
    before, after = unbroken(stack), broken(stack, change)
    new = {rule for rule, messages in after.items() if set(messages) - set(before.get(rule, []))}
    assert change.rule in new
    others = new - {change.rule} - ALONGSIDE.get(change.rule, set[str]())
    assert others <= ADVICE, f"{change.what}: no other rule stops the run"
