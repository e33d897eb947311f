"""Carrying actions out on a simulated job, each as an executor does on a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.analysis.simulation.job import Nodes
from holdfast.fallback.state_machine.actions import (
    DropPlaceholders,
    Hold,
    Record,
    Recreate,
    Release,
    Resume,
    Suspend,
    TaintHeld,
)
from holdfast.fallback.state_machine.state import read_state, write_state

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.analysis.simulation.job import SimulatedJob
    from holdfast.fallback.state_machine.actions import Action


def carry_out(job: SimulatedJob, action: Action, now: datetime) -> None:
    """Do what an action says.

    Simulated jobs do not listen for requests, have no child Jobs, and their pods end in time, so the actions about
    those have nothing to do.
    """
    if isinstance(action, Record | Suspend | Resume | Recreate):
        # By way of the text, as a real job's would be.
        job.state = read_state(write_state(action.state))
    match action:
        case Suspend():
            _suspend(job, action.pool, now)
        case Resume():
            _resume(job, action)
        case Hold():
            job.held = job.held or Nodes(pool=action.pool)
            job.placeholders = job.plan.pods
        case TaintHeld():
            job.is_tainted = True
        case DropPlaceholders():
            job.placeholders = 0
        case Release():
            job.held, job.placeholders, job.is_tainted = None, 0, False
        case _:
            pass


def _suspend(job: SimulatedJob, pool: str, now: datetime) -> None:
    if not job.suspended:
        job.leaving, job.left_at = job.nodes, now + job.plan.grace
    job.suspended = True
    job.placed_at = None
    job.nodes = Nodes(pool=pool)


def _resume(job: SimulatedJob, action: Resume) -> None:
    job.suspended = False
    if action.tolerate_hold and job.held is not None and job.held.pool == action.pool:
        job.nodes, job.held = job.held, Nodes(pool=action.pool)
