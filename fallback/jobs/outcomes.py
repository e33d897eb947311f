"""What a job that has failed fell to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.fallback.jobs.losses import losses_in
from holdfast.fallback.jobs.memory import NOTICE
from holdfast.fallback.state_machine.observation import Cause

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.jobs.memory import JobMemory


def cause_of_end(memory: JobMemory, at: datetime | None) -> Cause | None:
    """Return what was lost around a job's end; None where nothing is known of it.

    An eviction explains the failures around it, as it does in the count of outages.
    """
    around = [loss for loss in losses_in(memory) if at is None or abs(at - loss.at) <= NOTICE]
    evictions = [loss.cause for loss in around if loss.cause is not Cause.APPLICATION]
    if evictions:
        return evictions[-1]
    return Cause.APPLICATION if around else None
