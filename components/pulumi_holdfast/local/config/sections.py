"""The configuration of a local stack, a control plane and simulated nodes on this machine: its sections and its rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, Literal

from pydantic import Field

from pulumi_holdfast.config import versions
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.fields import ChartSource, FilePath, KubernetesVersion, Section
from pulumi_holdfast.config.loader import PLATFORM, checked, parse
from pulumi_holdfast.config.rules import (
    CLUSTER,
    MachineMarket,
    machine_problems,
    pool_and_ladder_problems,
    reservation_problems,
)
from pulumi_holdfast.config.sections import (
    POOLS_TEXT,
    VERSION_TEXT,
    JobMetricsStore,
    KarpenterPoolSection,
    PlatformDocument,
    ReservationSection,
)
from pulumi_holdfast.config.versions import version_problem
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.taints import GPU, SPOT

#: The file with the instance types, as problems name it.
CATALOGUE: Final = "components/pulumi_holdfast/ladder/machines/local.json"


class LocalCluster(Section):
    """The control plane and the nodes of the operators."""

    version: KubernetesVersion = Field(default=versions.KUBERNETES, description=VERSION_TEXT)
    kubeconfig: FilePath = Field(
        default=".rehearsal/local/kubeconfig", description="how the program reaches the control plane"
    )
    system_nodes: int = Field(
        default=1,
        ge=1,
        le=9,
        description="simulated on-demand nodes for the operators, tainted `CriticalAddonsOnly`",
    )


class LocalPool(KarpenterPoolSection):
    """Simulated nodes of one capacity type."""

    instance_types: tuple[str, ...] = Field(
        min_length=1,
        description="the types that the pool may launch; all with GPUs (the pool is then tainted `nvidia.com/gpu=present:NoSchedule`) or "
        "all without",
        examples=["[m7i.xlarge, m7a.xlarge]"],
    )
    reservation: ReservationSection | None = Field(default=None, description="on reserved pools")

    def machines(self) -> tuple[Machine, ...]:
        """The pool's known machine types."""
        catalogue = machine_catalogue("local")
        return tuple(catalogue[name] for name in self.instance_types if name in catalogue)

    def as_pool(self) -> Pool:
        """The pool for the rules in `scheduling`."""
        return self.pool_of(self.machines(), self.reservation)


class LocalMirror(Section):
    """Where charts come from."""

    charts: ChartSource = Field(
        default=".tools/charts",
        description="the source of the operators' charts; by default each chart's upstream",
    )


class LocalCheckpoints(Section):
    """The directory for checkpoints on this machine."""

    otherwise: ClassVar[str] = "Leave it out: on this machine, checkpoints are files in a directory."

    directory: FilePath = Field(
        default=".rehearsal/local/checkpoints",
        description="one folder per training namespace; [ADR 0003](adr/0003-local-checkpoints.md) says why a directory",
    )


class LocalPlatform(PlatformDocument):
    """A local stack: its document."""

    fixes: ClassVar[Mapping[str, str]] = {"resourcePools": "Write pools."}

    cloud: Literal["local"] = Field(description="the cloud; it determines which of the fields below exist")
    cluster: LocalCluster = Field(
        default_factory=LocalCluster,
        description="the control plane ([below](#cluster))",
        examples=["{systemNodes: 1}"],
    )
    mirror: LocalMirror = Field(
        default_factory=LocalMirror,
        description="where charts and images come from",
        examples=["{charts: .tools/charts}"],
    )
    pools: tuple[LocalPool, ...] = Field(
        description=POOLS_TEXT,
        examples=[
            "[{name: cpu, capacity: on-demand, instanceTypes: [m7i.xlarge], maxNodes: 20, default: true}]"
        ],
    )
    checkpoints: LocalCheckpoints = Field(
        default_factory=LocalCheckpoints,
        description="the store of checkpoints ([below](#checkpoints))",
        examples=["{directory: .rehearsal/local/checkpoints}"],
    )


def read_local_platform(document: Json) -> LocalPlatform:
    """Parse a local stack's configuration, and check its rules.

    Raises ConfigError with every problem of the shape; or, if it has none, with every problem of the rules.
    """
    platform = parse(LocalPlatform, document)
    return checked(platform, _problems(platform))


def _problems(platform: LocalPlatform) -> Iterator[Problem]:
    field, version = f"{CLUSTER}.version", platform.cluster.version
    if version != versions.KUBERNETES:
        yield version_problem(field, version, (SPOT, GPU)) or Problem(
            field=field,
            value=format_value(version),
            allowed=f'"{versions.KUBERNETES}", the version that `make tools` builds',
            fix=f'Write "{versions.KUBERNETES}".',
        )
    if platform.fallback.monitoring.jobs is JobMetricsStore.CLOUD:
        yield Problem(
            field=f"{PLATFORM}.fallback.monitoring.jobs",
            value="cloud",
            allowed="operator, or nothing: this machine has no managed service for Prometheus",
            fix="Write operator, or leave it out.",
        )
    yield from pool_and_ladder_problems(
        platform,
        platform.pools,
        problems_of=_pool_problems,
        as_pool=LocalPool.as_pool,
        a_default_pool="{name: cpu, capacity: on-demand, instanceTypes: [m7i.xlarge], maxNodes: 20, default: true}",
    )


def _pool_problems(pool: LocalPool, at: str) -> Iterator[Problem]:
    catalogue = machine_catalogue("local")
    market = MachineMarket(
        here=catalogue,
        allowed=f"the instance types in {CATALOGUE}: {', '.join(catalogue)}",
        fix=f"Write one of them, or describe it in {CATALOGUE}.",
    )
    yield from machine_problems(pool.instance_types, market, f"{at}.instanceTypes")
    yield from reservation_problems(
        pool.capacity, {"reservation": pool.reservation}, at, example="reservation: {}"
    )
