"""A stack judged by rules. What a rule cannot read stops nobody's preview, and is told."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.policies.findings import Finding
from holdfast.policies.tables.reading import READING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.policies.rule import Rule, Settings
    from holdfast.policies.stack import Stack


def judge(
    stack: Stack, rules: Sequence[tuple[Rule, Settings]], told_before: Sequence[Finding] = ()
) -> Mapping[str, Sequence[Finding]]:
    """Return what each rule finds, by its name.

    `told_before` is what could not be read of the configuration. A rule that fails proves nothing, and is reported by the one on what can be read.
    """
    found: dict[str, list[Finding]] = {READING.name: list(told_before)}
    for rule, settings in rules:
        try:
            found.setdefault(rule.name, []).extend(rule.find(stack, settings))
        except Exception as fault:  # noqa: BLE001 - whatever a program has registered, its preview goes on
            found.setdefault(READING.name, []).append(_failed(rule, fault))
    return found


def _failed(rule: Rule, fault: Exception) -> Finding:
    at = traceback.extract_tb(fault.__traceback__)[-1]
    return Finding(
        urn="",
        message=f"rule {rule.name!r} failed, so that nothing is proven by it here: {type(fault).__name__}: {fault} "
        f"({Path(at.filename).name}:{at.lineno}). That is a fault of the pack: please report it.",
        proven=False,
    )
