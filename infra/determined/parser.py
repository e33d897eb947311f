"""Parses Determined's master configuration: its pools, their values, and the problems of both."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import yaml

from holdfast.infra import naming
from holdfast.infra.config.errors import format_value
from holdfast.scheduling.errors import ConfigError, Problem
from holdfast.scheduling.json import Json, JsonValue
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import Machine, machine_catalogue

#: Fields of a pool and of its provider that a stack's pool has too.
CONVERTED: Final = frozenset({"pool_name", "provider"})
CONVERTED_OF_PROVIDER: Final = frozenset(
    {"type", "instance_type", "instance_slots", "max_instances", "min_instances", "root_volume_size", "spot"}
)

#: Fields that configure Determined's own agents and scheduler: a cluster has its own of each, and pods lose nothing.
IGNORED: Final = frozenset(
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
IGNORED_OF_PROVIDER: Final = frozenset(
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
UNSUPPORTED: Final[Mapping[str, tuple[str, str]]] = {
    "kubernetes_namespace": (
        "nothing, because it belongs to an existing cluster",
        "Remove the pool: this command converts pools of machines; write training namespaces by hand.",
    )
}
UNSUPPORTED_OF_PROVIDER: Final[Mapping[str, tuple[str, str]]] = {
    "spot_max_price": (
        "nothing, because Karpenter has no field that holds a price cap",
        "Remove it, and write it as maxPrice on the tiers of the ladder that use the pool.",
    ),
    "startup_script": (
        "nothing, because nodes run no user scripts",
        "Remove it, and use a DaemonSet or the job's image instead.",
    ),
    "container_startup_script": (
        "nothing, because there is no agent container",
        "Remove it, and use the job's image instead.",
    ),
    "image_id": (
        "nothing, because all nodes use the pinned image",
        "Remove it, and add its contents to the job's image.",
    ),
    "custom_tags": (
        "nothing, because tags are set for the whole stack",
        "Remove them, and write aws:defaultTags in the stack file.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Report:
    """Problems stop the conversion; notes say which fields were ignored or added."""

    problems: list[Problem] = field(default_factory=list[Problem])
    notes: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, kw_only=True)
class Values:
    """A mapping at a path. Reading an invalid value adds a problem to the report."""

    content: Json
    at: str
    report: Report

    def text(self, key: str, default: str | None = None) -> str | None:
        """A text; the default if it is missing, None if it is invalid or empty."""
        value = self.content.get(key, default)
        if isinstance(value, str) and value:
            return value
        self.report_value(key, "a text", f"Write `{key}: …`; Determined requires it too.")
        return None

    def integer(self, key: str, default: int, *, least: int, most: int) -> int:
        """A whole number from `least` to `most`; the default if it is missing or invalid."""
        value = self.content.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.report_value(
            key, f"a whole number, {least} to {most}", f"Write, for example, `{key}: {max(least, 1)}`."
        )
        return default

    def truth(self, key: str, *, default: bool) -> bool:
        """A boolean; the default if it is missing or invalid."""
        value = self.content.get(key, default)
        if isinstance(value, bool):
            return value
        self.report_value(key, "true or false", f"Write `{key}: true` or `{key}: false`.")
        return default

    def report_value(self, key: str, allowed: str, fix: str) -> None:
        """Report an invalid value."""
        value: JsonValue = self.content.get(key)
        self.report.problems.append(
            Problem(
                field=f"{self.at}.{key}",
                value=format_value(value) if key in self.content else "nothing",
                allowed=allowed,
                fix=fix,
            )
        )

    def report_unknown_fields(
        self, known: Collection[str], unsupported: Mapping[str, tuple[str, str]]
    ) -> None:
        """Report each field without an equivalent, and each field that is unknown to Determined."""
        for key in self.content.keys() - known:
            close = get_close_matches(key, known, n=1)
            unknown = (
                f"a field of Determined: {', '.join(sorted({*known, *unsupported}))}",
                f'Write "{close[0]}".' if close else "Remove it.",
            )
            self.report_value(key, *unsupported.get(key, unknown))


POOLS: Final = "resource_pools"


@dataclass(frozen=True, kw_only=True)
class MasterFile:
    """The unparsed pools, and the name of the auxiliary pool, for tasks without GPUs, if there is one."""

    pools: Sequence[JsonValue]
    auxiliary_pool: str | None


def read_master_file(file: Path) -> MasterFile:
    """Parse a master configuration, or a file with only `resource_pools`.

    Raises ConfigError if the file has no such list.
    """
    content = _content(file)
    pools = content.get(POOLS) if isinstance(content, Mapping) else None
    if not isinstance(content, Mapping) or not isinstance(pools, list) or not pools:
        raise ConfigError.of(
            field=f"{file}: {POOLS}",
            value="nothing" if pools is None else format_value(pools),
            allowed="a list of one pool or more, as in Determined's master configuration",
            fix="Use Determined's master.yaml, or a file with its resource_pools.",
        )
    return MasterFile(pools=pools, auxiliary_pool=_auxiliary_pool(content))


def _content(file: Path) -> JsonValue:
    try:
        # JSON converts keys and dates to text.
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
        fix="Use Determined's master.yaml.",
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
    """A converted pool. `source` is its name in Determined; `volume_gib` is None if it is not set."""

    name: str
    source: str
    capacity: CapacityType
    machines: tuple[Machine, ...]
    max_nodes: int
    volume_gib: int | None = None
    is_default: bool = False

    @property
    def may_be_default(self) -> bool:
        """Whether the pool can be the default."""
        return self.capacity is CapacityType.ON_DEMAND and not any(machine.gpus for machine in self.machines)

    def as_entry(self) -> Json:
        """The pool as an item of `pools`."""
        optional: dict[str, JsonValue] = {}
        if self.volume_gib is not None:
            optional["diskGiB"] = self.volume_gib
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
    """Parse one pool; None if it has problems, which are in the report."""
    if not isinstance(entry, Mapping):
        report.problems.append(_no_mapping(entry, at, "a mapping of pool_name and provider"))
        return None
    values = Values(content=entry, at=at, report=report)
    values.report_unknown_fields(CONVERTED | IGNORED, UNSUPPORTED)
    name = _name(values)
    provider = entry.get("provider")
    if not isinstance(provider, Mapping):
        report.problems.append(_no_mapping(provider, f"{at}.provider", "a mapping with type: aws"))
        return None
    if provider.get("type") != "aws":
        Values(content=provider, at=f"{at}.provider", report=report).report_value(
            "type", "aws", "Remove the pool: machines of other clouds have no equivalent on AWS."
        )
        return None
    left = sorted({*entry.keys() & IGNORED, *provider.keys() & IGNORED_OF_PROVIDER})
    if left:
        report.notes.append(f"{at}: ignored, without an equivalent: {', '.join(left)}")
    return _machines(Values(content=provider, at=f"{at}.provider", report=report), name)


def _machines(values: Values, name: tuple[str, str] | None) -> ConvertedPool | None:
    values.report_unknown_fields(CONVERTED_OF_PROVIDER | IGNORED_OF_PROVIDER, UNSUPPORTED_OF_PROVIDER)
    machine = _machine(values)
    if values.content.get("min_instances", 0) != 0:
        values.report_value(
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
    """The pool's name as a label, and its original name."""
    written = values.text("pool_name")
    if written is None:
        return None
    name = naming.as_dns_label(written)
    if not name:
        values.report_value(
            "pool_name", "a name with a letter or digit, for a label", "Write a name such as a100-spot."
        )
        return None
    if name != written:
        values.report.notes.append(
            f"{values.at}: {format_value(written)} is renamed to {name}; jobs select it by this name"
        )
    return name, written


def _machine(values: Values) -> Machine | None:
    name = values.text("instance_type", _INSTANCE_TYPE)
    catalogue = machine_catalogue("aws")
    machine = catalogue.get(name or "")
    if name is not None and machine is None:
        close = get_close_matches(name, catalogue, n=1)
        values.report_value(
            "instance_type",
            "an instance type of EC2",
            f'Write "{close[0]}".'
            if close
            else "Write another; `aws ec2 describe-instance-types` lists them.",
        )
    if machine is not None and values.content.get("instance_slots", machine.gpus) != machine.gpus:
        values.report_value(
            "instance_slots",
            f"{machine.gpus}, the GPUs of {machine.name}; a machine offers all its GPUs",
            "Remove it.",
        )
    return machine


def _no_mapping(value: JsonValue, field: str, allowed: str) -> Problem:
    fix = (
        "Remove the pool: manually started machines have no equivalent."
        if field.endswith(".provider")
        else "Write a mapping."
    )
    return Problem(
        field=field, value="nothing" if value is None else format_value(value), allowed=allowed, fix=fix
    )
