"""Reads single values of Determined's pools, and reports what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import yaml

from holdfast.infra import naming
from holdfast.infra.config.errors import format_value
from holdfast.scheduling.errors import ConfigError, Problem
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import Machine, machine_catalogue

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from holdfast.scheduling.json import Json, JsonValue


#: Fields of a pool and of its provider that a stack's pool has too.
TAKEN: Final = frozenset({"pool_name", "provider"})
TAKEN_OF_PROVIDER: Final = frozenset(
    {
        "type",
        "instance_type",
        "instance_slots",
        "max_instances",
        "min_instances",
        "root_volume_size",
        "spot",
    }
)

#: Fields that configure Determined's own agents and scheduler: a cluster has its own of each, and pods lose nothing.
LEFT: Final = frozenset(
    {
        "agent_reattach_enabled",
        "agent_reconnect_wait",
        "description",
        "max_aux_containers_per_agent",
        "max_cpu_containers_per_agent",
        "scheduler",
        "task_container_defaults",
    }
)
LEFT_OF_PROVIDER: Final = frozenset(
    {
        "agent_docker_image",
        "agent_docker_network",
        "agent_docker_runtime",
        "agent_fluent_image",
        "agent_reconnect_attempts",
        "agent_reconnect_backoff",
        "cpu_slots_allowed",
        "iam_instance_profile_arn",
        "instance_name",
        "launch_error_retries",
        "launch_error_timeout",
        "log_group",
        "log_stream",
        "master_cert_name",
        "master_url",
        "max_agent_starting_period",
        "max_idle_agent_period",
        "network_interface",
        "region",
        "ssh_key_name",
        "tag_key",
        "tag_value",
    }
)

#: Fields without an equivalent: why, and what to do.
REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "kubernetes_namespace": (
        "nothing here, since it belongs to a cluster that exists already",
        "Remove the pool: this command makes pools of machines, and training namespaces are written by hand.",
    ),
}
REFUSED_OF_PROVIDER: Final[Mapping[str, tuple[str, str]]] = {
    "spot_max_price": (
        "nothing here, since Karpenter has no field that holds a price cap",
        "Remove it: spot costs at most the on-demand price, and procurementTimeout ends the wait for it.",
    ),
    "startup_script": (
        "nothing here, since nodes run no script of yours",
        "Remove it, and do what it does in a DaemonSet or in the job's image.",
    ),
    "container_startup_script": (
        "nothing here, since there is no agent's container",
        "Remove it, and do what it does in the job's image.",
    ),
    "image_id": (
        "nothing here, since the image of nodes is pinned for the whole stack",
        "Remove it, and put what the image holds into the job's image.",
    ),
    "custom_tags": (
        "nothing here, since tags are those of the whole stack",
        "Remove them, and write them as aws:defaultTags in the stack file.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Report:
    """Problems keep pools from being turned into a stack's; notes only say what was left behind or made up."""

    problems: list[Problem] = field(default_factory=list[Problem])
    notes: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, kw_only=True)
class Values:
    """A mapping of Determined's at a path. Each reading of a value that is wrong adds a problem to the report."""

    content: Json
    at: str
    report: Report

    def text(self, key: str, default: str | None = None) -> str | None:
        """A text; the default where it is left out, None where it is none or empty."""
        value = self.content.get(key, default)
        if isinstance(value, str) and value:
            return value
        self.refuse(key, "a text", f"Write `{key}: …`, as Determined needs it too.")
        return None

    def integer(self, key: str, default: int, *, least: int, most: int) -> int:
        """A whole number from `least` to `most`; the default where it is left out or wrong."""
        value = self.content.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.refuse(
            key, f"a whole number, {least} to {most}", f"Write, for example, `{key}: {max(least, 1)}`."
        )
        return default

    def truth(self, key: str, *, default: bool) -> bool:
        """True or false; the default where it is left out or neither."""
        value = self.content.get(key, default)
        if isinstance(value, bool):
            return value
        self.refuse(key, "true or false", f"Write `{key}: true` or `{key}: false`.")
        return default

    def refuse(self, key: str, allowed: str, fix: str) -> None:
        """Report that a value cannot stand as it is."""
        value: JsonValue = self.content.get(key)
        self.report.problems.append(
            Problem(
                field=f"{self.at}.{key}",
                value=format_value(value) if key in self.content else "nothing",
                allowed=allowed,
                fix=fix,
            )
        )

    def refuse_others(self, known: Collection[str], refused: Mapping[str, tuple[str, str]]) -> None:
        """Report each field that has no equivalent, or that Determined does not know either."""
        for key in self.content.keys() - known:
            close = get_close_matches(key, known, n=1)
            unknown = (
                f"a field that Determined has here: {', '.join(sorted({*known, *refused}))}",
                f'Write "{close[0]}".' if close else "Remove it, if nothing rests on it.",
            )
            self.refuse(key, *refused.get(key, unknown))


POOLS: Final = "resource_pools"


@dataclass(frozen=True, kw_only=True)
class MasterFile:
    """The pools as they are written, and the name of the one that takes what needs no GPU, where there is one."""

    pools: Sequence[JsonValue]
    auxiliary_pool: str | None


def read_master_file(file: Path) -> MasterFile:
    """Read a master configuration, or a part of one that holds `resource_pools`.

    Raises ConfigError for a file without such a list.
    """
    content = _content(file)
    pools = content.get(POOLS) if isinstance(content, Mapping) else None
    if not isinstance(content, Mapping) or not isinstance(pools, list) or not pools:
        raise ConfigError(
            [
                Problem(
                    field=f"{file}: {POOLS}",
                    value="nothing" if pools is None else format_value(pools),
                    allowed="a list of one pool or more, as Determined's master configuration has it",
                    fix="Name Determined's master.yaml, or write its resource_pools into the file.",
                )
            ]
        )
    return MasterFile(pools=pools, auxiliary_pool=_auxiliary_pool(content))


def _content(file: Path) -> JsonValue:
    try:
        # Through JSON, so that every key is a text and a date one too.
        content: JsonValue = json.loads(json.dumps(yaml.safe_load(file.read_text("utf-8")), default=str))
    except OSError as error:
        raise ConfigError([_unreadable(file, error.strerror or "no file")]) from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise ConfigError([_unreadable(file, " ".join(str(error).split()))]) from None
    return content


def _unreadable(file: Path, reason: str) -> Problem:
    return Problem(
        field=str(file),
        value=f"a file that cannot be read ({reason})",
        allowed="a YAML file",
        fix="Name Determined's master.yaml.",
    )


def _auxiliary_pool(content: Json) -> str | None:
    manager = content.get("resource_manager")
    name = manager.get("default_aux_resource_pool") if isinstance(manager, Mapping) else None
    return name if isinstance(name, str) else None


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
    values.refuse_others(TAKEN | LEFT, REFUSED)
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
    left = sorted({*entry.keys() & LEFT, *provider.keys() & LEFT_OF_PROVIDER})
    if left:
        report.notes.append(f"{at}: left behind, as Determined's own: {', '.join(left)}")
    return _machines(Values(content=provider, at=f"{at}.provider", report=report), name)


def _machines(values: Values, name: tuple[str, str] | None) -> ConvertedPool | None:
    values.refuse_others(TAKEN_OF_PROVIDER | LEFT_OF_PROVIDER, REFUSED_OF_PROVIDER)
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
            f"{values.at}: {format_value(written)} is called {name}; jobs select it by this name"
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
    return Problem(
        field=field, value="nothing" if value is None else format_value(value), allowed=allowed, fix=fix
    )
