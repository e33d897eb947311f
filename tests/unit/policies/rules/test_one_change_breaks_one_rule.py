from functools import cache

import pytest

from holdfast.policies.pack import RULES
from holdfast.policies.rule import Level
from tests.support.policy_changes import CHANGES, Change
from tests.support.policy_programs import STACKS, program, reported

#: A break of a mandatory rule may be told beside advice that follows from it, and no other way round.
ADVICE = {rule.name for rule in RULES if rule.level is Level.ADVISORY}
CASES = [(change, stack) for change in CHANGES for stack in change.stacks]


@cache
def unbroken(stack: str) -> dict[str, list[str]]:
    return reported(program(stack))


def broken(stack: str, change: Change) -> dict[str, list[str]]:
    resources = program(stack)
    change.apply(resources)
    return reported(resources)


@pytest.mark.parametrize("stack", STACKS)
def test_the_repositorys_own_stacks_break_no_mandatory_rule(stack: str):
    assert set(unbroken(stack)) <= ADVICE, "they are what users start from"


def test_there_are_as_many_cases_as_promised():
    assert len(CASES) >= 150, (
        "one change for each rule on each cloud it is about, and more where a rule has more to say"
    )


def test_every_rule_is_broken_by_some_change():
    without = {rule.name for rule in RULES} - {change.rule for change in CHANGES} - ADVICE
    assert without <= {"compute-class-single-capacity-type"}, (
        "which has cases of its own, on stacks with classes"
    )


@pytest.mark.parametrize(
    ("change", "stack"), CASES, ids=[f"{stack}: {change.what}" for change, stack in CASES]
)
def test_one_change_breaks_one_rule_and_no_other(change: Change, stack: str):
    before, after = unbroken(stack), broken(stack, change)
    new = {rule for rule, messages in after.items() if set(messages) - set(before.get(rule, []))}
    assert change.rule in new, f"{change.what}: the rule that it is about says so"
    assert new - {change.rule} <= ADVICE, f"{change.what}: no other rule stops the run for it"
