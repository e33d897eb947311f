"""The program that the engine is shown breaks what it is meant to break."""

from __future__ import annotations

from holdfast.policies.rule import Level
from holdfast.policies.tables import RULES
from tests.support.policy_programs import reported
from tests.support.policy_violations import violations

MANDATORY = {rule.name for rule in RULES if rule.level is Level.MANDATORY}


def test_it_breaks_every_mandatory_rule() -> None:
    missing = MANDATORY - reported(violations()).keys()
    assert not missing, f"{missing} would not be seen to stop anything on the engine"
