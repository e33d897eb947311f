"""A ladder that a job can walk down to its end, and the facts of its pools."""

from dataclasses import replace
from typing import TypedDict

from typing_extensions import Unpack

from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.ladder.reachability.facts import AddedToleration, Limits, PoolFacts, TierFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.ladder.reachability.shape import Resources, Shape
from pulumi_holdfast.ladder.taints import GPU, SPOT, Toleration

P4D = MachineCapacity(
    name="p4d.24xlarge",
    capacity=Resources(cpu_millis=96_000, memory_mib=1152 * 1024, gpus=8),
    allocatable=Resources(cpu_millis=95_000, memory_mib=1100 * 1024, gpus=8),
    accelerator="a100",
)


def shape(**changed: object) -> Shape:
    """Four pods, each with all GPUs of a machine."""
    requests = Resources(cpu_millis=90_000, memory_mib=1000 * 1024, gpus=8)
    return replace(Shape(name="gang", pods=4, requests=requests), **changed)  # pyright: ignore[reportArgumentType] - one change of any field


def on_demand(name: str = "a100", **changed: object) -> PoolFacts:
    """On-demand GPU machines, eight of them, whose taint admission lets the job's pods tolerate."""
    facts = PoolFacts(
        name=name,
        title=name,
        capacity_types=frozenset({"on-demand"}),
        labels={POOL: name},
        taints=(GPU,),
        machines=(P4D,),
        limits=Limits(nodes=8),
        zones=frozenset({"us-east-1a", "us-east-1b"}),
        added_tolerations=(
            AddedToleration(toleration=Toleration.of(GPU)),
            AddedToleration(toleration=Toleration.of(SPOT)),
        ),
    )
    return replace(facts, **changed)  # pyright: ignore[reportArgumentType] - one change of any field


def spot(name: str = "a100-spot", **changed: object) -> PoolFacts:
    """The same on spot."""
    spot_facts: dict[str, object] = {"capacity_types": frozenset({"spot"}), "taints": (SPOT, GPU)}
    return on_demand(name, **{**spot_facts, **changed})


class TierFields(TypedDict, total=False):
    """What a test may change of a tier."""

    max_failures: int | None
    has_timeout: bool
    may_be_external: bool


def tier(
    number: int, *node_pools: PoolFacts, name: str | None = None, **changed: Unpack[TierFields]
) -> TierFacts:
    """A tier of these pools, left after five failures or when its capacity does not come in time."""
    fields: TierFields = {"max_failures": 5, "has_timeout": True, **changed}
    return TierFacts(number=number, pool=name or node_pools[0].name, node_pools=node_pools, **fields)


def ladder() -> list[TierFacts]:
    """Spot first, then on-demand."""
    return [tier(1, spot()), tier(2, on_demand(), max_failures=None, has_timeout=False)]
