"""The sections on training namespaces: their ladder, the shapes of their jobs, their quota."""

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, Final

from pydantic import Field, PlainSerializer, PlainValidator

from holdfast.infra.config.base import Section
from holdfast.infra.config.fields import NAME_ALLOWED, ChartSource, DnsLabel, Duration, error_with_fix
from holdfast.infra.config.ladder import FallbackSection
from holdfast.scheduling.ladder import MOST_FAILURES, UNLIMITED, Ladder, Tier
from holdfast.scheduling.pools import PoolSummary
from holdfast.scheduling.quantities import (
    CPU_ALLOWED,
    MEMORY_ALLOWED,
    AmountError,
    format_cpu,
    format_memory,
    parse_cpu,
    parse_memory,
)
from holdfast.scheduling.quantities import DURATION_ALLOWED as DURATION_ALLOWED
from holdfast.scheduling.quotas import Quota, QuotaSettings, quota_of
from holdfast.scheduling.reachability.shape import (
    LEAST,
    LONGEST_ACCELERATOR,
    MOST_ADAPTERS,
    MOST_GPUS,
    MOST_SHAPES,
    WIDEST_GANG,
    Resources,
    Shape,
)

_MOST: Final = 100_000

_OF_NONE: Final = (
    "Leave it out: such a quota rejects every pod without a request for it. Each pool's maxNodes limits the total "
    "instead."
)


class QuotaSection(Section):
    """The most that the pods of a training namespace may use; defaults follow from the pools of its ladder."""

    fixes: ClassVar[Mapping[str, str]] = {
        "cpu": _OF_NONE,
        "memory": _OF_NONE,
        "nvidia.com/gpu": "Write gpus.",
        "none": "Write enforced: false.",
        "enabled": "Write enforced.",
        "nodes": "Write gpus or pods, or maxNodes on the pools: a quota does not count nodes.",
    }

    enforced: bool = Field(
        default=True,
        description="false for a namespace without a quota, true for one with a quota",
        examples=["false"],
    )
    gpus: int | None = Field(
        default=None, ge=0, le=_MOST, description=f"a whole number of GPUs, 0 to {_MOST}", examples=["64"]
    )
    pods: int | None = Field(
        default=None, ge=1, le=_MOST, description=f"a whole number of pods, 1 to {_MOST}", examples=["500"]
    )

    def as_asked(self) -> QuotaSettings:
        """The quota for the rules in `scheduling`."""
        return QuotaSettings(enforced=self.enforced, gpus=self.gpus, pods=self.pods)


def _amount(value: object, parse: Callable[[str], int]) -> int:
    try:
        # YAML parses an unquoted 48 as a number.
        return parse(value if isinstance(value, str) else str(value))
    except AmountError as error:
        raise error_with_fix(error.fix) from None


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
    """One shape of job: a gang of pods that run together, each with these requests."""

    fixes: ClassVar[Mapping[str, str]] = {
        "requests": "Write cpu, memory and gpus of one pod.",
        "nvidia.com/gpu": "Write gpus.",
        "vpc.amazonaws.com/efa": "Write efa.",
        "parallelism": "Write pods.",
        "replicas": "Write pods.",
        "nodes": "Write pods: the machine decides how many of them fit on a node.",
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
    efa: int = Field(
        default=0,
        ge=0,
        le=MOST_ADAPTERS,
        description=f"a whole number of Elastic Fabric Adapters of each pod, 0 to {MOST_ADAPTERS}",
        examples=["4"],
    )
    accelerator: str | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_ACCELERATOR,
        description="a GPU model as in the cloud's machine table, such as a100",
        examples=["a100"],
    )

    def as_shape(self) -> Shape:
        """The shape for the rules in `scheduling`."""
        return Shape(
            name=self.name,
            pods=self.pods,
            requests=Resources(cpu_millis=self.cpu, memory_mib=self.memory, gpus=self.gpus, efa=self.efa),
            accelerator=self.accelerator,
        )


class TierSection(Section):
    """One tier of a ladder."""

    fixes: ClassVar[Mapping[str, str]] = {
        "maxRestarts": "Write maxFailures; a job keeps its own restart limit.",
        "timeout": "Write procurementTimeout.",
    }

    pool: str = Field(description="the name of a pool of this stack", examples=["a100-spot"])
    max_failures: int | None = Field(
        default=None,
        ge=UNLIMITED,
        le=MOST_FAILURES,
        description=f"a whole number of failures: 0 to {MOST_FAILURES}, or -1 for no limit",
        examples=["5"],
    )
    procurement_timeout: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["15m"])

    def as_tier(self) -> Tier:
        """The tier for the rules in `scheduling`."""
        return Tier(
            pool=self.pool, max_failures=self.max_failures, procurement_timeout=self.procurement_timeout
        )


class NamespaceSection(Section):
    """A training namespace: the ladder of its jobs, their shapes, and their quota."""

    fixes: ClassVar[Mapping[str, str]] = {
        "shape": "Write shapes, a list.",
        "jobs": "Write shapes: users submit jobs later, with kubectl.",
        "quotas": "Write quota.",
        "resourceQuota": "Write quota.",
    }

    name: DnsLabel = Field(description=NAME_ALLOWED, examples=["vision"])
    ladder: tuple[TierSection, ...] = Field(
        description="a list of tiers, the last on-demand", examples=["[{pool: a100}]"]
    )

    fallback: FallbackSection = Field(
        default_factory=FallbackSection,
        description="a mapping of failures, outageWindow, returnAfter and the other fields of fallback",
        examples=["{returnAfter: 1h}"],
    )
    shapes: tuple[ShapeSection, ...] = Field(
        default=(),
        max_length=MOST_SHAPES,
        description=f"a list of up to {MOST_SHAPES} shapes of jobs, each with its name",
        examples=["[{name: finetune, pods: 4, cpu: 48, memory: 512Gi, gpus: 8}]"],
    )
    quota: QuotaSection = Field(
        default_factory=QuotaSection,
        description="a mapping of gpus and pods, or enforced: false",
        examples=["{gpus: 64}"],
    )

    def as_ladder(self) -> Ladder:
        """The ladder for the rules in `scheduling`."""
        conduct = self.fallback
        return Ladder(
            tiers=tuple(tier.as_tier() for tier in self.ladder),
            failures=conduct.failures,
            outage_window=conduct.outage_window,
            give_up_after=conduct.give_up_after,
            application_failures=conduct.application_failures,
            failure_window=conduct.failure_window,
            return_after=conduct.return_after,
            hold_timeout=conduct.hold_timeout,
            start_timeout=conduct.start_timeout,
            deadline=conduct.deadline,
            restart_cost=conduct.restart_cost,
        )

    def as_shapes(self) -> tuple[Shape, ...]:
        """The shapes for the rules in `scheduling`."""
        return tuple(shape.as_shape() for shape in self.shapes)

    def as_quota(self, pools: Mapping[str, PoolSummary]) -> Quota | None:
        """The quota for a stack with these pools; None for no quota."""
        used = [pools[tier.pool] for tier in self.ladder if tier.pool in pools]
        return quota_of(self.quota.as_asked(), used, self.as_shapes())


class MirrorSection(Section):
    """Where charts come from."""

    charts: ChartSource = Field(
        default=".tools/charts",
        description="a directory, or an address that starts with oci:// or https://",
        examples=["oci://registry.example.com/charts"],
    )
