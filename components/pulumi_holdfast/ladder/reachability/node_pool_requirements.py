"""What a NodePool's requirements allow: values of labels, and machine types.

Karpenter intersects all requirements on one label, those that its labels make included, and takes the machine types whose
labels are among the values that are left (Karpenter v1.14.1, pkg/scheduling/requirements.go, Intersects).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, ON_DEMAND, SPOT, ZONE
from pulumi_holdfast.ladder.machines import LOCAL_ZONES, Machine, is_sold_in, regions, zones_of
from pulumi_holdfast.ladder.reachability.affinity import ABSENT, LabelValues
from pulumi_holdfast.ladder.reachability.node_labels import ALIASES, Provisioner, machine_labels

#: Karpenter's zones on Azure are the location and a number, such as eastus2-1: a number alone matches none.
_NOT_NUMBERS: Final = LabelValues(values=frozenset({"1", "2", "3"}), is_complement=True)


@dataclass(frozen=True, kw_only=True)
class NodePoolRequirement:
    """One requirement of a NodePool; `values` is None while they are not known."""

    key: str
    operator: str
    values: tuple[str, ...] | None = ()
    min_values: int | None = None


@dataclass(frozen=True, kw_only=True)
class NodePoolRequirements:
    """The requirements of a NodePool, one set of values for each label.

    `unknown_keys` are labels with a requirement that is not known or not valid; `min_values` is the least number of values
    that the machine types for a node must have between them.
    """

    allowed: Mapping[str, LabelValues] = field(default_factory=dict[str, LabelValues])
    unknown_keys: frozenset[str] = frozenset()
    min_values: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def of(cls, requirements: Iterable[NodePoolRequirement]) -> "NodePoolRequirements":
        """Merge requirements as Karpenter does."""
        allowed: dict[str, LabelValues] = {}
        unknown: set[str] = set()
        least: dict[str, int] = {}
        for each in requirements:
            key = ALIASES.get(each.key, each.key)
            if each.min_values is not None:
                least[key] = max(each.min_values, least.get(key, 0))
            values = _values_of(each)
            if values is None:
                unknown.add(key)
            else:
                allowed[key] = allowed.get(key, LabelValues(is_complement=True)) & values
        return cls(allowed=allowed, unknown_keys=frozenset(unknown), min_values=least)

    def select(self, machines: Iterable[Machine], provisioner: Provisioner) -> "Selection":
        """The machine types that the requirements allow."""
        region = self._region()
        undecided: set[str] = set()
        selected: list[Machine] = []
        for machine in machines:
            excluded, open_keys = self._judge(machine, provisioner)
            sold = region is None or is_sold_in(machine.name, region) or provisioner is Provisioner.LOCAL
            if not excluded and sold and self._is_sold_as_required(machine):
                selected.append(machine)
                undecided |= open_keys
        return Selection(machines=tuple(selected), undecided_by=tuple(sorted(undecided)))

    def contradictions(self, provisioner: Provisioner) -> tuple[str, ...]:
        """The labels of offerings that no node can have, so that Karpenter makes none."""
        kinds, zones = self.allowed.get(CAPACITY_TYPE), self.zones(provisioner)
        found = {CAPACITY_TYPE: kinds, ZONE: zones}
        return tuple(sorted(key for key, values in found.items() if values is not None and values.is_empty))

    def zones(self, provisioner: Provisioner) -> LabelValues | None:
        """The zones that are allowed and exist; None if it names none, or all but some of an unknown region."""
        allowed = self.allowed.get(ZONE)
        region = self._region()
        if provisioner is Provisioner.LOCAL:
            return LabelValues(values=frozenset(LOCAL_ZONES)) & (allowed or LabelValues(is_complement=True))
        if allowed is not None and provisioner is Provisioner.NAP:
            allowed = allowed & _NOT_NUMBERS
        if allowed is None or not allowed.is_complement:
            return allowed
        return None if region is None else LabelValues(values=frozenset(zones_of(region))) & allowed

    def _judge(self, machine: Machine, provisioner: Provisioner) -> tuple[bool, set[str]]:
        """Whether the requirements exclude a machine type, and the labels of which that is not known."""
        # Most of a thousand types are excluded by the first requirements: nothing else is computed for these.
        labels = machine_labels(machine, provisioner)
        open_keys: set[str] = set()
        for key, allowed in self.allowed.items():
            if key not in labels:
                continue
            value = labels[key]
            if value is UNKNOWN:
                open_keys.add(key)
            elif not (ABSENT.meets(allowed) if value is None else value in allowed):
                return True, set()
        open_keys |= labels.keys() & self.unknown_keys
        open_keys |= {key for key in self.min_values if labels.get(key, UNKNOWN) is UNKNOWN}
        return False, open_keys

    def _is_sold_as_required(self, machine: Machine) -> bool:
        capacity = self.allowed.get(CAPACITY_TYPE)
        if capacity is None:
            return True
        sold = {SPOT: machine.on_spot, ON_DEMAND: machine.on_demand}
        return any(is_sold and kind in capacity for kind, is_sold in sold.items()) or "reserved" in capacity

    def _region(self) -> str | None:
        """The region of the zones that are named, None if they are not of one region of AWS."""
        zones = self.allowed.get(ZONE)
        if zones is None or not zones.values:
            return None
        found = {_region_of_zone(zone) for zone in zones.values}
        return found.pop() if len(found) == 1 else None


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Machine types that requirements allow; `undecided_by` are requirements that may exclude some of them."""

    machines: tuple[Machine, ...]
    undecided_by: tuple[str, ...] = ()


def _values_of(requirement: NodePoolRequirement) -> LabelValues | None:
    try:
        return (
            None if requirement.values is None else LabelValues.of(requirement.operator, requirement.values)
        )
    except ValueError:
        return None


def _region_of_zone(zone: str) -> str | None:
    region = zone[:-1]
    return region if region in regions("aws") and zone in zones_of(region) else None
