"""Who buys a platform's machines, and loses them: another one on each cloud."""

from collections.abc import Callable
from typing import Final, Protocol

from holdfast.scheduling.json import Json

# Karpenter waits up to 10 s for more pods before it buys; a busy machine takes its time for the rest.
WAIT_SECONDS: Final = 180.0


class Interruption(Protocol):
    """A spot node that is about to be taken."""

    def interrupt(self) -> None:
        """Take it."""
        ...

    def wait_until_gone(self) -> None:
        """Wait until it is gone."""
        ...


class Provisioner(Protocol):
    """Buys machines for pods that find no room, of pools that are spot or on-demand."""

    @property
    def disruption(self) -> str:
        """What the pods of a node that is taken say of how they left it: the reason in their DisruptionTarget."""
        ...

    def on_spot(self) -> Json:
        """Return what a pod's spec says that wants a spot machine."""
        ...

    def on_demand(self) -> Json:
        """Return what a pod's spec says that wants an on-demand machine."""
        ...

    def has_plain_spot(self) -> bool:
        """Whether there are spot machines without GPUs to buy."""
        ...

    def has_gpus_on_demand(self) -> bool:
        """Whether there are on-demand machines with GPUs to buy."""
        ...

    def release_empty_nodes(self) -> None:
        """Give back every machine on which no pod runs, as it would minutes later.

        A machine that is still starting was bought for a pod that waits for it: it stays.
        """
        ...

    def interruption(self, node: str, say: Callable[[str], None]) -> Interruption:
        """Prepare to take a spot node, as its cloud takes it. Raises RehearsalError where it is nobody's."""
        ...
