"""Go modules whose data are read: Karpenter's providers, as tools/karpenter pins them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.catalog import pinned_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_PINS: Final = "karpenter"


def pinned_module(project_root: Path, module: str) -> Path:
    """The folder of a module at its pinned version, which is fetched. Raises RehearsalError where it cannot be had."""
    version = pinned_text(project_root, _PINS, module)
    told = run(["go", "mod", "download", "-json", f"{module}@{version}"], project_root / "tools" / _PINS)
    return Path(json.loads(told)["Dir"])


def run(command: Sequence[str], folder: Path) -> str:
    """What a command prints. Raises RehearsalError with what it complains of."""
    try:
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    except OSError as error:
        raise RehearsalError(f"{command[0]} cannot be run ({error.strerror}): install it") from error
    if done.returncode:
        raise RehearsalError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
