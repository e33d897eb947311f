"""What one part of the state machine answers: the state as it will be, and what is to be done and said for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.fallback.state_machine.actions import Action
    from holdfast.fallback.state_machine.report import Report
    from holdfast.fallback.state_machine.state import JobState


@dataclass(frozen=True, kw_only=True)
class Step:
    """A part's answer. A state that no action carries is recorded by whoever puts the parts together."""

    state: JobState | None
    actions: tuple[Action, ...] = ()
    reports: tuple[Report, ...] = ()
