"""What a training namespace may declare of its jobs' shapes, wherever it does so."""

from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.scheduling.errors import Problem
from holdfast.scheduling.reachability.shape import Resources, Shape

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
