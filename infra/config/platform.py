"""The sections that every cloud's platform has."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from holdfast.infra.config.fallback import ConductSection
from holdfast.infra.config.fields import NAME_ALLOWED, ChartSource, DnsLabel, Duration
from holdfast.infra.config.quota import QuotaSection
from holdfast.infra.config.section import Section
from holdfast.infra.config.shapes import ShapeSection
from holdfast.scheduling.ladder import MOST_FAILURES, UNLIMITED, Ladder, Tier
from holdfast.scheduling.pools import PoolSummary
from holdfast.scheduling.quantities import DURATION_ALLOWED as DURATION_ALLOWED
from holdfast.scheduling.quotas import Quota, quota_of
from holdfast.scheduling.reachability.shape import Shape
from holdfast.scheduling.shapes import MOST_SHAPES


class TierSection(Section):
    """One tier of a ladder."""

    fixes: ClassVar[Mapping[str, str]] = {
        "maxRestarts": "Write maxFailures; a job's own restart limit stays in the job.",
        "timeout": "Write procurementTimeout.",
    }

    pool: str = Field(description="the name of a pool of this stack", examples=["a100-spot"])
    max_failures: int | None = Field(
        default=None,
        ge=UNLIMITED,
        le=MOST_FAILURES,
        description=f"a whole number of failures: 0 to {MOST_FAILURES}, or -1 to stay for ever",
        examples=["5"],
    )
    procurement_timeout: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["15m"])

    def as_tier(self) -> Tier:
        """The tier as the rules know it."""
        return Tier(
            pool=self.pool, max_failures=self.max_failures, procurement_timeout=self.procurement_timeout
        )


class NamespaceSection(Section):
    """A training namespace, the ladder its jobs follow, their shapes, and how much they may take."""

    fixes: ClassVar[Mapping[str, str]] = {
        "shape": "Write shapes, a list.",
        "jobs": "Write shapes: jobs come later, by kubectl.",
        "quotas": "Write quota.",
        "resourceQuota": "Write quota.",
    }

    name: DnsLabel = Field(description=NAME_ALLOWED, examples=["vision"])
    ladder: tuple[TierSection, ...] = Field(
        description="a list of tiers, the last on-demand", examples=["[{pool: a100}]"]
    )

    fallback: ConductSection = Field(
        default_factory=ConductSection,
        description="a mapping of how jobs walk the ladder: failures, outageWindow, returnAfter and what else there is",
        examples=["{returnAfter: 4h}"],
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
        """The ladder as the rules know it."""
        conduct = self.fallback
        return Ladder(
            tiers=tuple(tier.as_tier() for tier in self.ladder),
            failures=conduct.failures,
            outage_window=conduct.outage_window,
            give_up_after=conduct.give_up_after,
            application_failures=conduct.application_failures,
            return_after=conduct.return_after,
            hold_timeout=conduct.hold_timeout,
            start_timeout=conduct.start_timeout,
            deadline=conduct.deadline,
        )

    def as_shapes(self) -> tuple[Shape, ...]:
        """The shapes as the rules know them."""
        return tuple(shape.as_shape() for shape in self.shapes)

    def as_quota(self, pools: Mapping[str, PoolSummary]) -> Quota | None:
        """The quota on a stack of these pools, None where the namespace is to have none."""
        used = [pools[tier.pool] for tier in self.ladder if tier.pool in pools]
        return quota_of(self.quota.as_asked(), used, self.as_shapes())


class MirrorSection(Section):
    """Where charts are taken from."""

    charts: ChartSource = Field(
        default=".tools/charts",
        description="a directory, or an address that starts with oci:// or https://",
        examples=["oci://registry.example.com/charts"],
    )
