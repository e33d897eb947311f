"""Jobs that their users stop or take over: by `suspend: true`, by an annotation, or by removing the label.

From then on the controller neither resumes nor moves the job, also during a move.
"""

from __future__ import annotations

from typing import Final

from pulumi_holdfast.controller.jobs.actions import DeleteChildren, EventReason, JobEvent, JobStep, Suspend
from pulumi_holdfast.controller.jobs.observation import Observation
from pulumi_holdfast.controller.jobs.state import JobState, Phase, Purpose
from pulumi_holdfast.controller.state_machine.tier_visit import (
    at_rest,
    first_tier_visit,
    new_tier_visit,
    with_expected_restart,
)
from pulumi_holdfast.ladder.labels import FOLLOWS, STOP

#: The purposes of a suspension after which the job is on another tier.
MOVES: Final = frozenset({Purpose.FAILOVER, Purpose.FAILBACK})


def stopped_state(state: JobState, observation: Observation) -> JobState:
    """Return the state of a job that its user must resume; a move that was under way counts as made.

    A job that is in another cluster, or on its way there, is resumed in its own: on the tier that its template selects.
    """
    elsewhere = state.is_elsewhere and observation.pool
    if elsewhere or (state.suspended_by_us and state.purpose in MOVES):
        pool = observation.pool if elsewhere and observation.pool else state.pool
        entered = new_tier_visit(state, observation, pool=pool, rank=state.rank)
        state = with_expected_restart(entered, state, observation)
    return at_rest(state, Phase.STOPPED)


def step_suspended_externally(state: JobState, observation: Observation) -> JobStep:
    """Record that another client has suspended the job."""
    return JobStep(
        state=stopped_state(state, observation),
        events=(
            JobEvent(
                reason=EventReason.STOPPED,
                message=(
                    "The job was suspended by another client: it stays suspended until `suspend: false` is "
                    "set."
                ),
            ),
        ),
    )


def step_stop(state: JobState | None, observation: Observation) -> JobStep | None:
    """Stop a job whose user or home requests it; None without a request, or if it cannot be suspended now."""
    pool = observation.pool if state is None or not state.suspended_by_us else state.template_pool
    is_ended = observation.outcome is not None or observation.is_managed_by_kueue
    if not observation.stop_requested or is_ended or pool is None:
        return None
    stopped = stopped_state(state or first_tier_visit(observation, pool, 0), observation)
    if observation.suspended:
        # Resumed by its user, a child Job of another template would keep that template's selectors.
        has_outdated = observation.is_suspension_complete and observation.outdated_children > 0
        actions = (DeleteChildren(),) if has_outdated and not observation.pods_remaining else ()
        is_news = state is None or state.phase is not Phase.STOPPED
        return JobStep(
            state=stopped, actions=actions, events=(_stopped_event(observation),) if is_news else ()
        )
    if not observation.can_be_suspended or observation.not_suspendable_reason is not None:
        return None
    return JobStep(
        state=stopped, actions=(Suspend(state=stopped, pool=pool),), events=(_stopped_event(observation),)
    )


def step_taken_over(state: JobState, observation: Observation) -> JobStep:
    """Hand over a job whose label was removed while the controller suspended it: it stays suspended."""
    return JobStep(
        state=stopped_state(state, observation),
        events=(
            JobEvent(
                reason=EventReason.HANDED_OVER,
                message=(
                    f"The label {FOLLOWS} was removed in the middle of a move to {state.pool}: the fallback controller does "
                    f"nothing more. The job is suspended and its pods select {observation.pool}: set `suspend: false` to resume it."
                ),
                is_warning=True,
            ),
        ),
    )


def _stopped_event(observation: Observation) -> JobEvent:
    if observation.awaits_permit:
        return JobEvent(
            reason=EventReason.STOPPED,
            message=(
                "The job is a copy that its home cluster does not permit to run: it stays suspended until home resumes or "
                "deletes it."
            ),
        )
    return JobEvent(
        reason=EventReason.STOPPED,
        message=(
            f"The job is stopped, as its annotation {STOP} asks: it stays suspended. To resume it, remove the annotation and "
            "set `suspend: false`."
        ),
    )
