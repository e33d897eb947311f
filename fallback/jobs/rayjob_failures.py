"""How often a RayJob has failed, recorded as it happens: its operator forgets why when it begins anew."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holdfast.fallback.jobs.memory import KEPT, FailedAttempt
from holdfast.fallback.jobs.notices import standing
from holdfast.fallback.jobs.rayjob_status import failed_attempts
from holdfast.fallback.jobs.values import mapping, text, uid_of
from holdfast.fallback.state_machine.observation import Cause, Loss, Part

if TYPE_CHECKING:
    from holdfast.fallback.jobs.memory import RayMemory
    from holdfast.fallback.jobs.snapshot import Snapshot
    from holdfast.fallback.state_machine.report import Report
    from holdfast.scheduling.json import Json

# It did not begin to run in time: for want of nodes or of an image, which other clocks measure. No failure of its own.
_NOT_BEGUN: Final = "PreRunningDeadlineExceeded"
_LONGEST: Final = 300


def recorded(memory: RayMemory, seen: Snapshot) -> RayMemory:
    """Return the memory with the failures taken in that have been counted since the last look.

    Those from before the first look are nobody's any more: the job's state says up to where they are accounted for.
    """
    failed = failed_attempts(seen.job)
    if memory.failed is None or failed < memory.failed:
        # A counter that has gone back is another job's, of the same name.
        return replace(memory, failed=failed, attempts=())
    status = mapping(seen.job.get("status"))
    new = tuple(
        FailedAttempt(
            number=number,
            at=seen.now,
            reason=text(status.get("reason")) or "unknown",
            message=text(status.get("message"))[:_LONGEST],
        )
        for number in range(memory.failed + 1, failed + 1)
    )
    kept = tuple(each for each in memory.attempts if seen.now - each.at <= KEPT)
    return replace(memory, failed=failed, attempts=(*kept, *new))


def failed_attempts_as_losses(memory: RayMemory, job: Json, pool: str | None) -> tuple[Loss, ...]:
    """Return what has failed without any pod being lost: the driver itself, which runs on the head."""
    return tuple(
        Loss(
            pod=f"{uid_of(job)}/{each.number}",
            at=each.at,
            cause=Cause.APPLICATION,
            part=Part.HEAD,
            pool=pool,
        )
        for each in memory.attempts
        if each.reason != _NOT_BEGUN
    )


def attempt_notice(memory: RayMemory) -> tuple[Report, ...]:
    """Say what the last attempt failed of."""
    if not memory.attempts:
        return ()
    last = memory.attempts[-1]
    said = f": {last.message}" if last.message else ""
    return (standing("AttemptFailed", f"Attempt {last.number} of the RayJob failed ({last.reason}){said}"),)
