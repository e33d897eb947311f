"""Shapes: what the jobs of a training namespace look like. The jobs themselves come later, and are in no program."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from holdfast.scheduling.errors import Problem
from holdfast.scheduling.reachability import messages
from holdfast.scheduling.reachability.affinity import Term
from holdfast.scheduling.taints import Toleration


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
        """How often it fits side by side; what requests nothing does without end."""
        ratios = [
            there // wanted
            for wanted, there in (
                (self.cpu_millis, room.cpu_millis),
                (self.memory_mib, room.memory_mib),
                (self.gpus, room.gpus),
            )
            if wanted > 0
        ]
        return max(0, min(ratios)) if ratios else _WITHOUT_END

    def times(self, count: int) -> "Resources":
        """So many of it."""
        return Resources(
            cpu_millis=self.cpu_millis * count, memory_mib=self.memory_mib * count, gpus=self.gpus * count
        )

    def __str__(self) -> str:
        """As a message names it: `8 GPUs, 90 CPU, 900 GiB`; of GiB tenths, cut off, as the API server can write them too."""
        cpu = f"{_decimal(self.cpu_millis, 1000)} CPU"
        tenths = self.memory_mib * 10 // _GIB
        memory = f"{_decimal(tenths, 10)} GiB" if self.memory_mib >= _GIB else f"{self.memory_mib} MiB"
        gpus = {0: (), 1: ("1 GPU",)}.get(self.gpus, (f"{self.gpus} GPUs",))
        return ", ".join((*gpus, cpu, memory))


_GIB: Final = 1024
_WITHOUT_END: Final = 2**31


def _decimal(parts: int, of: int) -> str:
    return str(parts // of) if parts % of == 0 else f"{parts / of:g}"


def total(parts: Sequence[Resources]) -> Resources:
    """All of them together."""
    return Resources(
        cpu_millis=sum(each.cpu_millis for each in parts),
        memory_mib=sum(each.memory_mib for each in parts),
        gpus=sum(each.gpus for each in parts),
    )


def widest(rooms: Sequence[Resources]) -> Resources:
    """The most of each that one of the rooms has."""
    return Resources(
        cpu_millis=max((each.cpu_millis for each in rooms), default=0),
        memory_mib=max((each.memory_mib for each in rooms), default=0),
        gpus=max((each.gpus for each in rooms), default=0),
    )


#: A kubelet's default; what each cloud sets is in `allocatable`.
MAX_PODS_PER_NODE: Final = 110

DEFAULT_SHAPE: Final = "default"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One kind of job: a gang of `pods`, all there at once, each with these requests.

    `accelerator` is the kind of GPU as its cloud spells it, None where any will do. `selector` is what its pods select
    beside their tier's pool, `affinity` the alternatives of which its nodes must answer one, `tolerations` what they tolerate before admission adds to it, `zones` where their volumes
    are, None where nothing ties them to a zone.
    """

    name: str = DEFAULT_SHAPE
    pods: int = 1
    requests: Resources
    accelerator: str | None = None
    selector: Mapping[str, str] = field(default_factory=dict[str, str])
    affinity: tuple[Term, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    zones: frozenset[str] | None = None

    @property
    def title(self) -> str:
        """How a message names it."""
        gang = messages.ALONE if self.pods == 1 else messages.GANG.format(pods=self.pods)
        return messages.SHAPE.format(name=self.name, gang=gang, requests=self.requests)


#: What a pod of a training job asks for at least, beside its GPUs: of what a shape does not say.
LEAST: Final = Resources(cpu_millis=1000, memory_mib=2048)

# Bounds of lists and numbers: the cost of a rule of the API server's is estimated from them.
MOST_SHAPES: Final = 16
WIDEST_GANG: Final = 10_000
MOST_GPUS: Final = 64
LONGEST_ACCELERATOR: Final = 63


def shape_problems(shapes: Sequence[Shape], at: str) -> Iterator[Problem]:
    """Shapes that contradict themselves; `at` is the path of their list."""
    for index, shape in enumerate(shapes):
        if shape.accelerator is not None and not shape.requests.gpus:
            yield Problem(
                field=f"{at}[{index}].accelerator",
                value=f'"{shape.accelerator}" without GPUs',
                allowed="a kind of GPU beside gpus of 1 or more",
                fix="Add gpus, such as 8, how many each pod asks for; or leave it out.",
            )
