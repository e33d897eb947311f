"""The rule that spot nodes keep away whoever does not ask for them, and that no pool mixes spot with on-demand.

A pod that selects nothing goes to the cheapest machine, which is a spot one: a Ray head there takes its whole cluster
with it. And a pool of both buys spot first and taints all its nodes alike, so that its on-demand machines are closed to
the very pods that fall back to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.declared import declared_pools
from holdfast.policies.findings import Finding
from holdfast.policies.known_values import UNKNOWN
from holdfast.scheduling.labels import ON_DEMAND, SPOT
from holdfast.scheduling.taints import REPELLING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.declared import DeclaredPool
    from holdfast.policies.findings import StackResource
    from holdfast.policies.rule import Settings


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the pools whose spot nodes are open to everybody, and those that mix spot with on-demand."""
    return tuple(
        Finding(urn=pool.resource.urn, message=f"{pool.title} {problem}")
        for pool in declared_pools(resources)
        if pool.facts.is_decided
        for problem in _problems(pool)
    )


def _problems(pool: DeclaredPool) -> Iterator[str]:
    kinds, taints = pool.facts.capacity_types, pool.facts.taints
    if {SPOT, ON_DEMAND} <= kinds:
        yield (
            "makes spot and on-demand nodes, with one set of taints for both: the on-demand ones are closed to jobs that "
            "fall back, or the spot ones open to everybody. Make a pool of each."
        )
    elif SPOT in kinds and taints is not UNKNOWN and not any(each.effect in REPELLING for each in taints):
        yield (
            "makes spot nodes that any pod can land on. Taint them, as karpenter.sh/capacity-type=spot:NoSchedule, "
            f"under `{pool.taints_path}`."
        )
    elif (
        SPOT not in kinds
        and taints is not UNKNOWN
        and any(_says_spot(each.key, each.value) for each in taints)
    ):
        yield f"makes on-demand nodes under a taint of spot. Remove it from `{pool.taints_path}`."


def _says_spot(key: str, value: str) -> bool:
    return value == SPOT or key.endswith(("gke-spot", "scalesetpriority"))
