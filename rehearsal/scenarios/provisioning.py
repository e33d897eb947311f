"""The protocols of what makes and interrupts a platform's nodes: Karpenter or the cluster autoscaler of a cloud."""

from collections.abc import Callable
from typing import Final, Protocol

from holdfast.scheduling.json import Json

# How long a scenario waits for one condition: Karpenter batches pods for up to 10 s; the rest is for a busy computer.
WAIT_SECONDS: Final = 180.0


class Interruption(Protocol):
    """The interruption of one spot node."""

    def interrupt(self) -> None:
        """Interrupt the node."""
        ...

    def wait_until_gone(self) -> None:
        """Wait until the node is gone."""
        ...


class Provisioner(Protocol):
    """Makes nodes for pending pods, in spot and on-demand pools."""

    @property
    def disruption(self) -> str:
        """The reason in the DisruptionTarget condition of pods on an interrupted node."""
        ...

    def on_spot(self) -> Json:
        """Return the fields of a pod's spec that select spot."""
        ...

    def on_demand(self) -> Json:
        """Return the fields of a pod's spec that select on-demand."""
        ...

    def has_plain_spot(self) -> bool:
        """Whether there is a spot pool without GPUs."""
        ...

    def has_gpus_on_demand(self) -> bool:
        """Whether there is an on-demand pool with GPUs."""
        ...

    def release_empty_nodes(self) -> None:
        """Delete every empty node at once, as the autoscaler would minutes later.

        A machine that is still starting stays: a pod is pending for it.
        """
        ...

    def interruption(self, node: str, say: Callable[[str], None]) -> Interruption:
        """Prepare the interruption of a spot node, as its cloud does it. Raises RehearsalError if it is not a spot node."""
        ...
