"""Reads what Determined's master configuration says of pools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import yaml

from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from holdfast.scheduling.json import Json, JsonValue

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
                    value="nothing" if pools is None else shown(pools),
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
