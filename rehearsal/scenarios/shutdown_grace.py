"""How long pods get when their node is told to end. Pure."""

from dataclasses import dataclass
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.summary import mapping

# What GKE's kubelets give unless a pool says otherwise: of the 30 s that Compute Engine leaves a spot machine, the second
# half is for pods that the cluster cannot do without.
_TOTAL_SECONDS: Final = 30
_CRITICAL_SECONDS: Final = 15
# `system-cluster-critical`, the lower one of the two classes of such pods.
_CRITICAL_PRIORITY: Final = 2_000_000_000
_USUAL_SECONDS: Final = 30

# On a pod: how many seconds it takes to stop by itself. Without it, it dies of the first signal, as a program that does
# not heed it.
STOPS_AFTER: Final = "rehearsal.holdfast.dev/stops-after-seconds"
# What a program that SIGTERM ends leaves behind, and one that SIGKILL does.
_TERMINATED: Final = 143
_KILLED: Final = 137


@dataclass(frozen=True, kw_only=True)
class ShutdownGrace:
    """The seconds that a node leaves its pods: users' pods first, then those the cluster cannot do without."""

    users: int
    critical: int

    @property
    def is_none(self) -> bool:
        """Whether pods are told nothing: the node is gone, and they with it."""
        return not (self.users or self.critical)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a pod ends: what it got of the seconds it asks for, how many it took, and its exit code."""

    asked: int
    got: int
    took: float
    exit_code: int


def grace_of(kubelet: Json) -> ShutdownGrace:
    """Return the grace of a pool's nodes, by the kubelet configuration of the pool."""
    total = _seconds(kubelet, "shutdownGracePeriodSeconds", _TOTAL_SECONDS)
    critical = min(total, _seconds(kubelet, "shutdownGracePeriodCriticalPodsSeconds", _CRITICAL_SECONDS))
    return ShutdownGrace(users=total - critical, critical=critical)


def is_critical(pod: Json) -> bool:
    """Whether the cluster cannot do without a pod."""
    priority = mapping(pod.get("spec")).get("priority")
    return isinstance(priority, int) and priority >= _CRITICAL_PRIORITY


def ending_of(pod: Json, grace: ShutdownGrace) -> Ending:
    """Return how a pod ends: what it asks for counts only where it is less than what its node leaves it."""
    given = mapping(pod.get("spec")).get("terminationGracePeriodSeconds")
    asked = given if isinstance(given, int) else _USUAL_SECONDS
    got = min(asked, grace.critical if is_critical(pod) else grace.users)
    needs = float(str(mapping(mapping(pod.get("metadata")).get("annotations")).get(STOPS_AFTER) or 0))
    return Ending(
        asked=asked, got=got, took=min(needs, got), exit_code=_TERMINATED if needs <= got else _KILLED
    )


def _seconds(kubelet: Json, field: str, usual: int) -> int:
    value = kubelet.get(field)
    return int(value) if isinstance(value, int | float) else usual
