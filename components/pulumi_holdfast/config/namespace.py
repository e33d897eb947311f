"""The sections on training namespaces: their ladder, the shapes of their jobs, their quota."""

from collections.abc import Mapping
from typing import ClassVar, Final

from pydantic import Field

from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.fields import NAME_ALLOWED, ChartSource, DnsLabel, Duration
from pulumi_holdfast.config.ladder import FallbackSection
from pulumi_holdfast.config.shape import ShapeSection
from pulumi_holdfast.ladder.ladder import HIGHEST_PRICE, MOST_FAILURES, MOST_TIERS, UNLIMITED, Ladder, Tier
from pulumi_holdfast.ladder.pools import PoolSummary
from pulumi_holdfast.ladder.quantities import DURATION_ALLOWED
from pulumi_holdfast.ladder.quotas import Quota, QuotaSettings, quota_of
from pulumi_holdfast.ladder.reachability.shape import MOST_SHAPES, Shape

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


class TierSection(Section):
    """One tier of a ladder."""

    fixes: ClassVar[Mapping[str, str]] = {
        "maxRestarts": "Write maxFailures; a job keeps its own restart limit.",
        "timeout": "Write procurementTimeout.",
        "spotMaxPrice": "Write maxPrice.",
        "region": "Write cluster, the name of a cluster in clusters.",
    }

    pool: str = Field(
        description="the name of a pool of this stack, or of the tier's cluster", examples=["a100-spot"]
    )
    cluster: DnsLabel | None = Field(
        default=None, description="the name of a cluster in clusters", examples=["us-east-2"]
    )
    max_failures: int | None = Field(
        default=None,
        ge=UNLIMITED,
        le=MOST_FAILURES,
        description=f"a whole number of failures: 0 to {MOST_FAILURES}, or -1 for no limit",
        examples=["5"],
    )
    procurement_timeout: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["15m"])

    price: float | None = Field(
        default=None,
        gt=0,
        le=HIGHEST_PRICE,
        description=f"what a node costs per hour, in the same currency on all tiers: above 0, up to {HIGHEST_PRICE}",
        examples=["9.83"],
    )
    max_price: float | None = Field(
        default=None,
        gt=0,
        le=HIGHEST_PRICE,
        description=f"what a node may cost per hour at most, as price: above 0, up to {HIGHEST_PRICE}",
        examples=["4.5"],
    )

    def as_tier(self) -> Tier:
        """The tier for the rules in `scheduling`."""
        return Tier(
            pool=self.pool,
            cluster=self.cluster or "",
            max_failures=self.max_failures,
            procurement_timeout=self.procurement_timeout,
            price=self.price,
            max_price=self.max_price,
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
        max_length=MOST_TIERS,
        description=f"a list of up to {MOST_TIERS} tiers, the last on-demand",
        examples=["[{pool: a100}]"],
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

    @property
    def pools_here(self) -> tuple[str, ...]:
        """The pools of its ladder, without those of other clusters."""
        return tuple(tier.pool for tier in self.ladder if tier.cluster is None)

    def as_ladder(self) -> Ladder:
        """The ladder for the rules in `scheduling`."""
        section = self.fallback
        return Ladder(
            tiers=tuple(tier.as_tier() for tier in self.ladder),
            failures=section.failures,
            outage_window=section.outage_window,
            give_up_after=section.give_up_after,
            application_failures=section.application_failures,
            failure_window=section.failure_window,
            return_after=section.return_after,
            hold_timeout=section.hold_timeout,
            start_timeout=section.start_timeout,
            deadline=section.deadline,
            restart_cost=section.restart_cost,
        )

    def as_shapes(self) -> tuple[Shape, ...]:
        """The shapes for the rules in `scheduling`."""
        return tuple(shape.as_shape() for shape in self.shapes)

    def as_quota(self, pools: Mapping[str, PoolSummary]) -> Quota | None:
        """The quota for a stack with these pools; None for no quota."""
        used = [pools[pool] for pool in self.pools_here if pool in pools]
        return quota_of(self.quota.as_asked(), used, self.as_shapes())


class MirrorSection(Section):
    """Where charts come from."""

    charts: ChartSource = Field(
        default=".tools/charts",
        description="a directory, or an address that starts with oci:// or https://",
        examples=["oci://registry.example.com/charts"],
    )
