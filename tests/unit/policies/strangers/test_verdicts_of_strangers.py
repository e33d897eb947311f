"""The pack's verdict on other teams' programs is that of a careful reader, in the profile that they get by default."""

from collections.abc import Callable

import pytest

from pack import RULES, settings
from pulumi_holdfast.program.patches import with_patches
from pulumi_holdfast.program.resources import Stack
from rule import PACK_DEFAULTS, Level
from rules.verdicts import RULE as VERDICTS_RULE
from rules.verdicts import Word, verdicts
from tests.support.builders.policy_programs import VERDICTS, findings, stopping
from tests.unit.policies.strangers import aws, azure, gcp
from tests.unit.policies.strangers.advice import ADVICE, WITHOUT_FIX
from tests.unit.policies.strangers.fixes import FIXES, Fixes, Program, apply_fix
from tests.unit.policies.strangers.programs import Stranger

STRANGERS = (*aws.STRANGERS, *azure.STRANGERS, *gcp.STRANGERS)
IDS = [
    f"{cloud}: {each}"
    for cloud, listed in (("aws", aws.STRANGERS), ("azure", azure.STRANGERS), ("gcp", gcp.STRANGERS))
    for each in listed
]


def test_strangers_are_many_and_half_of_them_sound() -> None:
    assert len(STRANGERS) >= 30, "programs of every cloud"
    sound = [each for each in STRANGERS if not each.stops]
    assert len(sound) >= 12, "a pack that stops every program proves nothing"
    stopping = {rule for each in STRANGERS for rule in each.stops}
    mandatory = {rule.name for rule in RULES if rule.level is Level.MANDATORY}
    assert stopping == mandatory, "each rule that stops a stranger has its fix applied below"
    silent = {rule.name for rule in RULES} - {name for each in STRANGERS for name in findings(each.resources)}
    assert not silent, "the fixes of each rule are made below"


@pytest.mark.parametrize("stranger", STRANGERS, ids=IDS)
def test_verdict_on_a_stranger_is_that_of_a_careful_reader(stranger: Stranger) -> None:
    found = verdicts(Stack(with_patches(stranger.resources)), PACK_DEFAULTS)
    words = [each.word for each in found]
    assert words == ([] if stranger.word is None else [stranger.word]), f"{stranger.reading} {found}"


@pytest.mark.parametrize("stranger", STRANGERS, ids=IDS)
def test_stranger_is_stopped_only_by_what_keeps_its_jobs_from_falling_back(stranger: Stranger) -> None:
    found = stopping(stranger.resources)
    assert found.keys() == stranger.stops, f"{stranger.reading} {found}"


#: A fix may uncover what is behind it, such as a tier that is no longer the last and needs a time limit.
MOST_ROUNDS = 60


def follow(program: Program, asked: Callable[[Program], list[str]], fixes: Fixes) -> list[str]:
    """The messages that are left after the fix of each is made, one after another."""
    messages = asked(program)
    for _ in range(MOST_ROUNDS):
        if messages:
            apply_fix(program, messages[0], fixes)
            messages = asked(program)
    return messages


def stops(program: Program) -> list[str]:
    return [message for found in stopping(program).values() for message in found]


def everything(program: Program) -> list[str]:
    """All messages in the profile `strict` but the verdicts: those that stop come first."""
    found = findings(program, [rule for rule in RULES if rule.name != VERDICTS], **program.settings)
    each = [(not one.proven, one.message) for listed in found.values() for one in listed]
    return [message for _, message in sorted(each) if not any(part in message for part in WITHOUT_FIX)]


@pytest.mark.parametrize("stranger", STRANGERS, ids=IDS)
def test_stranger_who_follows_each_message_arrives_at_a_pass(stranger: Stranger) -> None:
    program = Program(stranger.resources)
    assert follow(program, stops, FIXES) == [], "each message that stops leads on"
    words = {each.word for each in verdicts(Stack(with_patches(program)), PACK_DEFAULTS)}
    assert not stranger.stops or words <= {Word.PROVED, Word.ASSUMED}, f"and the end is a proof: {words}"
    assert follow(program, everything, ADVICE) == [], "so does all advice, in the profile `strict`"
    words = {
        each.word
        for each in verdicts(Stack(with_patches(program)), settings(VERDICTS_RULE, {}, program.settings))
    }
    assert words <= {Word.PROVED, Word.ASSUMED, stranger.word}, str(words)
