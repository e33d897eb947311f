"""The section on the shapes of a training namespace's jobs."""

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar

from pydantic import Field, PlainSerializer, PlainValidator

from holdfast.infra.config.fields import NAME_ALLOWED, DnsLabel, refusal
from holdfast.infra.config.section import Section
from holdfast.scheduling.quantities import (
    CPU_ALLOWED,
    MEMORY_ALLOWED,
    AmountError,
    format_cpu,
    format_memory,
    parse_cpu,
    parse_memory,
)
from holdfast.scheduling.reachability.shape import Resources, Shape
from holdfast.scheduling.shapes import LEAST, LONGEST_ACCELERATOR, MOST_GPUS, WIDEST_GANG


def _amount(value: object, parse: Callable[[str], int]) -> int:
    try:
        # An unquoted 48 arrives as a number.
        return parse(value if isinstance(value, str) else str(value))
    except AmountError as error:
        raise refusal(error.fix) from None


Cpu = Annotated[
    int,
    PlainValidator(lambda value: _amount(value, parse_cpu)),
    PlainSerializer(format_cpu, return_type=str),
]
Memory = Annotated[
    int,
    PlainValidator(lambda value: _amount(value, parse_memory)),
    PlainSerializer(format_memory, return_type=str),
]


class ShapeSection(Section):
    """One kind of job that a training namespace is for: a gang of pods that run together, each with these requests."""

    fixes: ClassVar[Mapping[str, str]] = {
        "requests": "Write cpu, memory and gpus, those of one pod.",
        "nvidia.com/gpu": "Write gpus.",
        "parallelism": "Write pods.",
        "replicas": "Write pods.",
        "nodes": "Write pods: how many of them fit on a node, its machine says.",
    }

    name: DnsLabel = Field(description=NAME_ALLOWED, examples=["finetune"])
    pods: int = Field(
        default=1,
        ge=1,
        le=WIDEST_GANG,
        description=f"a whole number of pods that run together, 1 to {WIDEST_GANG}",
        examples=["4"],
    )
    cpu: Cpu = Field(default=LEAST.cpu_millis, description=CPU_ALLOWED, examples=["48"])
    memory: Memory = Field(default=LEAST.memory_mib, description=MEMORY_ALLOWED, examples=["512Gi"])
    gpus: int = Field(
        default=0,
        ge=0,
        le=MOST_GPUS,
        description=f"a whole number of GPUs of each pod, 0 to {MOST_GPUS}",
        examples=["8"],
    )
    accelerator: str | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_ACCELERATOR,
        description="a kind of GPU, as the cloud's machine table spells it",
        examples=["a100"],
    )

    def as_shape(self) -> Shape:
        """The shape as the rules know it."""
        return Shape(
            name=self.name,
            pods=self.pods,
            requests=Resources(cpu_millis=self.cpu, memory_mib=self.memory, gpus=self.gpus),
            accelerator=self.accelerator,
        )
