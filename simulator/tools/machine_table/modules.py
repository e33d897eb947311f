"""The Go modules of the Karpenter providers with machine data, pinned in tools/karpenter."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.catalog import pinned_text

_PINS: Final = "karpenter"


def pinned_module(project_root: Path, module: str) -> Path:
    """Download a module at its pinned version and return its folder. Raises RehearsalError."""
    version = pinned_text(project_root, _PINS, module)
    output = run(["go", "mod", "download", "-json", f"{module}@{version}"], project_root / "tools" / _PINS)
    return Path(json.loads(output)["Dir"])


def run(command: Sequence[str], folder: Path) -> str:
    """Return the output of a command. Raises RehearsalError with its error message."""
    try:
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    except OSError as error:
        raise RehearsalError(f"{command[0]} cannot run ({error.strerror}); install it") from error
    if done.returncode:
        raise RehearsalError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
