"""Jobs that are refused: their pods cannot be created, or they cannot reach on-demand capacity.

The judgement is an input (`fallback.jobs.judgement` makes it). A new job that is refused is suspended before a tier's time runs,
and resumed when it is judged again and nothing is wrong any more. One that has had all its nodes is only reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_holdfast.controller.jobs.actions import EventReason, JobEvent, JobStep, Suspend, standing_event
from pulumi_holdfast.controller.jobs.state import LONGEST_REFUSAL, JobState, Phase, Purpose
from pulumi_holdfast.ladder.frozen import replace

if TYPE_CHECKING:
    from pulumi_holdfast.controller.jobs.observation import Observation


def is_new(state: JobState | None) -> bool:
    """Whether a job has never had all its nodes, nor been moved or resumed, so that it may still be refused."""
    if state is None or state.phase is Phase.REFUSED:
        return True
    losses = state.evictions + state.application_failures + state.unexplained
    return state.phase is Phase.WAITING and not state.moves and not losses and state.resumed_at is None


def step_refused(state: JobState, observation: Observation) -> JobStep | None:
    """Suspend a new job that is refused; None if it is not."""
    judgement = observation.judgement
    if judgement is None or not judgement.problems or not is_new(state) or not observation.can_be_suspended:
        return None
    refused = replace(
        state,
        phase=Phase.REFUSED,
        refusal=judgement.refusal,
        waiting_since=None,
        purpose=None,
        suspended_at=observation.now,
    )
    said = JobEvent(
        reason=EventReason.REFUSED,
        message=f"The job is suspended, because it could not run to its end: {judgement.refusal} It is resumed when it can.",
        is_warning=True,
    )
    return JobStep(
        state=refused,
        actions=(Suspend(state=refused, pool=refused.pool, only_without_nodes=True),),
        events=(said,),
    )


def accepted(state: JobState, observation: Observation) -> JobState | None:
    """Return the state of a refused job that is judged again and may run now, about to be resumed; None if it stays refused."""
    judgement = observation.judgement
    if judgement is None:
        return None
    if judgement.problems:
        return None if judgement.refusal == state.refusal else replace(state, refusal=judgement.refusal)
    return replace(state, phase=Phase.SUSPENDING, purpose=Purpose.RESTART, refusal="")


def judgement_events(state: JobState | None, observation: Observation) -> tuple[JobEvent, ...]:
    """Return the warnings that follow from the judgement of a job that is not suspended for it."""
    judgement = observation.judgement
    if judgement is None or observation.outcome is not None:
        return ()
    found: list[JobEvent] = []
    if judgement.on_spot and not observation.follows:
        found.append(standing_event(EventReason.CANNOT_FOLLOW, judgement.on_spot))
    if state is None or not observation.follows or state.phase is Phase.REFUSED:
        return tuple(found)
    if judgement.problems:
        found.append(
            standing_event(EventReason.REFUSED, f"The job may not run to its end: {judgement.refusal}")
        )
    if judgement.not_judged and is_new(state):
        said = " ".join(judgement.not_judged)[:LONGEST_REFUSAL]
        found.append(standing_event(EventReason.NOT_JUDGED, f"Whether the job can run is not judged: {said}"))
    return tuple(found)
