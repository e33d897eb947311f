"""Waiting until nothing is under way any more."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from holdfast.rehearsal.timeline.traces import JobTrace
from holdfast.rehearsal.timeline.witness import Witness
from holdfast.scheduling.holding import CONTROLLER_NAMESPACE, LEASE
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.summary import mapping
from tests.soak.faults.arena import OUTAGE_SECONDS, PODS
from tests.soak.faults.injecting import Injector

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

# What is counted when the controller is back is counted at that time, and its window begins then.
_APART: Final = timedelta(seconds=OUTAGE_SECONDS + 3)
_LEASE_SECONDS: Final = 90.0


@dataclass(frozen=True, kw_only=True)
class Settling:
    """Says when every job is where it is to stay; `seconds` is how long that may take."""

    witness: Witness
    injector: Injector
    jobs: Sequence[str]
    seconds: float

    def wait(self) -> None:
        """Wait until each job has ended or runs whole, and a controller leads. Raises RehearsalError where some do not."""
        try:
            self.witness.wait(self.is_settled, "every job runs or has ended", seconds=self.seconds)
        except RehearsalError as error:
            with self.witness.look():
                told = "; ".join(f"{name}: {_told(self.witness.job(name))}" for name in self._unsettled()[:5])
                raise RehearsalError(f"{error}: {len(self._unsettled())} are not, as {told}") from error
        self._wait_led()

    def is_settled(self) -> bool:
        """Whether each job has ended or runs whole; to be asked while nothing more is taken in."""
        return not self._unsettled()

    def pause(self) -> None:
        """Let the outages that were counted last be over, so that what comes next is another."""
        threading.Event().wait(_APART.total_seconds())

    def _unsettled(self) -> list[str]:
        return [name for name in self.jobs if not self._is_settled(self.witness.job(name))]

    def _is_settled(self, trace: JobTrace) -> bool:
        if not trace.changes:
            return False
        last = trace.last
        if last.outcome:
            return True
        alive = trace.alive()
        is_whole = len(alive) == len(trace.running_in(last.pool)) == PODS
        is_hit = any(self.injector.is_struck(pod) for pod in alive)
        return last.phase == "Running" and not last.suspended and is_whole and not is_hit

    def _wait_led(self) -> None:
        since = datetime.now(UTC)

        def is_renewed(lease: "Json | None") -> bool:
            renewed = mapping((lease or {}).get("spec")).get("renewTime")
            return isinstance(renewed, str) and datetime.fromisoformat(renewed) > since

        self.injector.client.wait_for(
            "coordination.k8s.io/v1",
            "Lease",
            LEASE,
            namespace=CONTROLLER_NAMESPACE,
            timeout_seconds=_LEASE_SECONDS,
            condition=is_renewed,
            what="a controller leads",
        )


def _told(trace: JobTrace) -> str:
    if not trace.changes:
        return "never seen"
    last = trace.last
    pods = ", ".join(
        f"{pod.name} on {pod.node or 'no node'}{' ending' if pod.leaving_at else ''}" for pod in trace.alive()
    )
    return f"{last.phase} on {last.pool}{', suspended' if last.suspended else ''}, pods: {pods or 'none'}"
