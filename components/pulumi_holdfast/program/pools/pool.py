"""The model of a pool: its facts, and the resource that declares it. Each cloud's module creates it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner, machine_capacity
from pulumi_holdfast.ladder.taints import GKE_SPOT_TAINT, SPOT, Taint
from pulumi_holdfast.program.resources import Value, at

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pulumi_holdfast.ladder.reachability.affinity import LabelValues
    from pulumi_holdfast.ladder.reachability.facts import PoolFacts
    from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
    from pulumi_holdfast.program.resources import StackResource

#: The pool label of a pool's nodes, None without one; the values that Karpenter may set, where no ladder of the program names
#: one of them.
PoolLabel: TypeAlias = "str | LabelValues | Unknown | None"


@dataclass(frozen=True, kw_only=True)
class DeclaredPool:
    """What a resource declares about a pool.

    `label` is the value of the pool label on its nodes; `profile` is what the resource says of this pool;
    `node_pool` the resource's name in the cluster; `title` names it in messages; `labels_path` and `taints_path` are where the resource has them, `no_schedule` how
    it spells that effect. `is_for_jobs` is false for system pools.
    """

    resource: StackResource
    profile: Value
    provisioner: Provisioner
    label: PoolLabel
    node_pool: str
    title: str
    labels_path: str
    taints_path: str
    facts: PoolFacts
    no_schedule: str = "NoSchedule"
    is_for_jobs: bool = True

    @property
    def spot_taint(self) -> Taint:
        """The taint that its spot nodes should have, as the resource spells it."""
        taint = GKE_SPOT_TAINT if self.provisioner is Provisioner.GKE else SPOT
        return replace(taint, effect=self.no_schedule)


@dataclass(frozen=True, kw_only=True)
class Machines:
    """A pool's machine types: the capacities of those in the machine table, and the names of the others.

    `undecided_by` and `unsatisfiable` are requirements that may exclude some of them, and that exclude all.
    """

    capacities: tuple[MachineCapacity, ...] | Unknown
    unknown_types: tuple[str, ...] = ()
    undecided_by: tuple[str, ...] = ()
    unsatisfiable: tuple[str, ...] = ()

    @property
    def are_known(self) -> bool:
        """Whether all of them are known."""
        return self.capacities is not UNKNOWN and not self.unknown_types

    @property
    def have_gpus(self) -> bool:
        """Whether any of the known ones has GPUs."""
        return self.capacities is not UNKNOWN and any(each.capacity.gpus for each in self.capacities)


#: Cluster autoscalers take pods of a lower priority for expendable.
LEAST_PRIORITY: Final = -10

#: Why pods may not run on nodes of a pool, although they fit there.
WINDOWS: Final = "its nodes run Windows"
NO_DRIVER: Final = (
    "its nodes have no GPU driver of the cloud, and whether another program installs one is not known"
)


def machines_named(
    types: Collection[str] | Unknown | None,
    cloud: str,
    provisioner: Provisioner,
    *,
    efa: bool | Unknown = False,
) -> Machines:
    """Return the machines with these names on a cloud; UNKNOWN if the pool takes any type, or the cloud is not known.

    `efa`: the pool uses their fabric adapters.
    """
    if types is UNKNOWN or types is None or not cloud:
        return Machines(capacities=UNKNOWN)
    table = machine_catalogue(cloud)
    return Machines(
        capacities=tuple(
            machine_capacity(table[name], provisioner, efa=efa) for name in sorted(types) if name in table
        ),
        unknown_types=tuple(name for name in sorted(types) if name not in table),
    )


def taint_of(value: Value) -> Taint | Unknown | None:
    """Return a taint as Kubernetes spells it; None if the value is not one."""
    key, given, effect = (at(value, part) for part in ("key", "value", "effect"))
    if value is UNKNOWN or UNKNOWN in (key, given, effect):
        return UNKNOWN
    if not isinstance(key, str) or not isinstance(effect, str):
        return None
    return Taint(key=key, value=given if isinstance(given, str) else "", effect=effect)


def known_taints(found: Sequence[Taint | Unknown | None]) -> tuple[Taint, ...] | Unknown:
    """Return the taints among these values; UNKNOWN if one of them is."""
    return UNKNOWN if UNKNOWN in found else tuple(taint for taint in found if isinstance(taint, Taint))
