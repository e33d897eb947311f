"""Writes pools as a stack file has them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from holdfast.infra.determined.conversion import Conversion

_ONE_LINE = 10_000


def as_yaml(conversion: Conversion) -> str:
    """The notes as comments, then `pools:` with a line for each pool."""
    entries = [
        yaml.safe_dump(
            dict(pool.as_entry()), default_flow_style=True, sort_keys=False, width=_ONE_LINE
        ).strip()
        for pool in conversion.pools
    ]
    lines = [f"# {note}." for note in conversion.notes] + ["pools:"] + [f"  - {entry}" for entry in entries]
    return "\n".join(lines) + "\n"
