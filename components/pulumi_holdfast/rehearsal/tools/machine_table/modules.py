"""What the machine tables have in common: their layout, and the pinned Go modules of the Karpenter providers."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.tools.catalog import pinned_text

_PINS: Final = "karpenter"


def pinned_module(project_root: Path, module: str) -> Path:
    """Download a module at its pinned version and return its folder. Raises RehearsalError."""
    version = pinned_text(project_root, _PINS, module)
    output = run(["go", "mod", "download", "-json", f"{module}@{version}"], project_root / "tools" / _PINS)
    return Path(json.loads(output)["Dir"])


def prices_by_region(
    source: str, region: re.Pattern[str], price: re.Pattern[str]
) -> Mapping[str, Mapping[str, float]]:
    """Return the prices by region and machine type in a price list of Karpenter, which is Go source."""
    return {
        found["region"]: {each["name"]: float(each["price"]) for each in price.finditer(found["body"])}
        for found in region.finditer(source)
    }


def letters_of(regions: Iterable[str], characters: str) -> Mapping[str, str]:
    """Return regions by the character that stands for each. Raises RehearsalError if there are too few characters."""
    ordered = sorted(regions)
    if len(ordered) > len(characters):
        raise RehearsalError(
            f"{len(ordered)} regions have no character each: let the table spell them with two characters"
        )
    return dict(zip(characters, ordered, strict=False))


def render(
    columns: Sequence[str],
    regions: Mapping[str, str],
    zones: Mapping[str, str],
    rows: Iterable[Sequence[JsonValue]],
) -> str:
    """Return the text of a table: one line for each machine, so that a change of one changes one line."""
    lines = [json.dumps(row, separators=(",", ":")) for row in rows]
    return "\n".join(
        [
            "{",
            f'"columns": {json.dumps(columns)},',
            f'"regions": {json.dumps(regions)},',
            f'"zones": {json.dumps(zones)},',
            '"machines": [',
            ",\n".join(lines),
            "]",
            "}",
            "",
        ]
    )


def run(command: Sequence[str], folder: Path) -> str:
    """Return the output of a command. Raises RehearsalError with its error message."""
    try:
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    except OSError as error:
        raise RehearsalError(f"{command[0]} cannot run ({error.strerror}); install it") from error
    if done.returncode:
        raise RehearsalError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
