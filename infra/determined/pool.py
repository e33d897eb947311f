"""A pool of Determined's, as a stack has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from holdfast.infra import naming
from holdfast.infra.config.problems import shown
from holdfast.infra.determined import fields
from holdfast.infra.determined.values import Values
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import Machine, machine_catalogue

if TYPE_CHECKING:
    from holdfast.infra.determined.report import Report
    from holdfast.scheduling.json import Json, JsonValue

#: What Determined takes for what is left out.
_INSTANCE_TYPE: Final = "g4dn.metal"
_MAX_INSTANCES: Final = 5
_VOLUME_GB: Final = 200


@dataclass(frozen=True, kw_only=True)
class ConvertedPool:
    """A pool; `source` is what its name was. `volume_gib` is None where nothing is said of it."""

    name: str
    source: str
    capacity: CapacityType
    machines: tuple[Machine, ...]
    max_nodes: int
    volume_gib: int | None = None
    is_default: bool = False

    @property
    def may_be_default(self) -> bool:
        """Whether pods that ask for nothing may land here."""
        return self.capacity is CapacityType.ON_DEMAND and not any(machine.gpus for machine in self.machines)

    def as_entry(self) -> Json:
        """The pool as it is written under `pools`."""
        optional: dict[str, JsonValue] = {}
        if self.volume_gib is not None:
            optional["volumeGiB"] = self.volume_gib
        if self.is_default:
            optional["default"] = True
        return {
            "name": self.name,
            "capacity": self.capacity.value,
            "instanceTypes": [machine.name for machine in self.machines],
            "maxNodes": self.max_nodes,
            **optional,
        }


def read_pool(entry: JsonValue, at: str, report: Report) -> ConvertedPool | None:
    """A pool of Determined's; None where it cannot be had, of which the report then says why."""
    if not isinstance(entry, Mapping):
        report.problems.append(_no_mapping(entry, at, "a mapping of pool_name and provider"))
        return None
    values = Values(content=entry, at=at, report=report)
    values.refuse_others(fields.TAKEN | fields.LEFT, fields.REFUSED)
    name = _name(values)
    provider = entry.get("provider")
    if not isinstance(provider, Mapping):
        report.problems.append(_no_mapping(provider, f"{at}.provider", "a mapping with type: aws"))
        return None
    if provider.get("type") != "aws":
        Values(content=provider, at=f"{at}.provider", report=report).refuse(
            "type", "aws", "Remove the pool: machines of another cloud have no equivalent on AWS."
        )
        return None
    left = sorted({*entry.keys() & fields.LEFT, *provider.keys() & fields.LEFT_OF_PROVIDER})
    if left:
        report.notes.append(f"{at}: left behind, as Determined's own: {', '.join(left)}")
    return _machines(Values(content=provider, at=f"{at}.provider", report=report), name)


def _machines(values: Values, name: tuple[str, str] | None) -> ConvertedPool | None:
    values.refuse_others(fields.TAKEN_OF_PROVIDER | fields.LEFT_OF_PROVIDER, fields.REFUSED_OF_PROVIDER)
    machine = _machine(values)
    if values.content.get("min_instances", 0) != 0:
        values.refuse(
            "min_instances", "0", "Remove it: a pool has the machines that its pods need, down to none."
        )
    has_volume = "root_volume_size" in values.content
    volume = values.integer("root_volume_size", _VOLUME_GB, least=30, most=16384)
    max_nodes = values.integer("max_instances", _MAX_INSTANCES, least=1, most=1000)
    is_spot = values.truth("spot", default=False)
    if name is None or machine is None:
        return None
    return ConvertedPool(
        name=name[0],
        source=name[1],
        capacity=CapacityType.SPOT if is_spot else CapacityType.ON_DEMAND,
        machines=(machine,),
        max_nodes=max_nodes,
        volume_gib=volume if has_volume else None,
    )


def _name(values: Values) -> tuple[str, str] | None:
    """The pool's name, and what it was."""
    written = values.text("pool_name")
    if written is None:
        return None
    name = naming.as_dns_label(written)
    if not name:
        values.refuse("pool_name", "a name of which a label can be made", "Write a name such as a100-spot.")
        return None
    if name != written:
        values.report.notes.append(
            f"{values.at}: {shown(written)} is called {name}; jobs select it by this name"
        )
    return name, written


def _machine(values: Values) -> Machine | None:
    name = values.text("instance_type", _INSTANCE_TYPE)
    catalogue = machine_catalogue("aws")
    machine = catalogue.get(name or "")
    if name is not None and machine is None:
        close = get_close_matches(name, catalogue, n=1)
        values.refuse(
            "instance_type",
            "an instance type of EC2",
            f'Write "{close[0]}".'
            if close
            else "Write another; `aws ec2 describe-instance-types` lists them.",
        )
    if machine is not None and values.content.get("instance_slots", machine.gpus) != machine.gpus:
        values.refuse(
            "instance_slots",
            f"{machine.gpus}, the GPUs of {machine.name}: a machine offers all of its own",
            "Remove it.",
        )
    return machine


def _no_mapping(value: JsonValue, field: str, allowed: str) -> Problem:
    fix = (
        "Remove the pool: machines that you start yourself have no equivalent."
        if field.endswith(".provider")
        else "Write a mapping."
    )
    return Problem(field=field, value="nothing" if value is None else shown(value), allowed=allowed, fix=fix)
