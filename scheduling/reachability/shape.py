"""Shapes: what the jobs of a training namespace look like. The jobs themselves come later, and are in no program."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from scheduling.tolerations import Toleration


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Amounts of what pods request and machines have: thousandths of a CPU, MiB, GPUs."""

    cpu_millis: int
    memory_mib: int
    gpus: int = 0

    def fits_in(self, room: "Resources") -> bool:
        """Whether the room has as much of each."""
        return (
            self.cpu_millis <= room.cpu_millis
            and self.memory_mib <= room.memory_mib
            and self.gpus <= room.gpus
        )

    def times_in(self, room: "Resources") -> int:
        """How often it fits side by side; the room's own count of pods bounds what requests nothing."""
        ratios = [
            there // wanted
            for wanted, there in (
                (self.cpu_millis, room.cpu_millis),
                (self.memory_mib, room.memory_mib),
                (self.gpus, room.gpus),
            )
            if wanted > 0
        ]
        return max(0, min(ratios)) if ratios else MOST_PODS

    def __str__(self) -> str:
        """As a message names it: `8 GPUs, 90 CPU, 900 GiB`."""
        cpu = f"{self.cpu_millis / 1000:g} CPU"
        memory = f"{self.memory_mib / 1024:g} GiB" if self.memory_mib >= _GIB else f"{self.memory_mib} MiB"
        gpus = {0: (), 1: ("1 GPU",)}.get(self.gpus, (f"{self.gpus} GPUs",))
        return ", ".join((*gpus, cpu, memory))


_GIB: Final = 1024

#: A kubelet's default; what each cloud sets is in `allocatable`.
MOST_PODS: Final = 110

DEFAULT_SHAPE: Final = "default"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One kind of job: a gang of `pods`, all there at once, each with these requests.

    `accelerator` is the kind of GPU as its cloud spells it, None where any will do. `selector` is what its pods select
    beside their tier's pool, `tolerations` what they tolerate before admission adds to it, `zones` where their volumes
    are, None where nothing ties them to a zone.
    """

    name: str = DEFAULT_SHAPE
    pods: int = 1
    requests: Resources
    accelerator: str | None = None
    selector: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerations: tuple[Toleration, ...] = ()
    zones: frozenset[str] | None = None

    @property
    def title(self) -> str:
        """How a message names it."""
        gang = "a pod" if self.pods == 1 else f"{self.pods} pods"
        return f"shape {self.name} ({gang} of {self.requests})"
