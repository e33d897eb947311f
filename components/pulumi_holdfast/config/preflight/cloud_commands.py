"""Runs a command of a cloud's own command line, which the guides require anyway."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pulumi_holdfast.ladder.errors import ConfigError

Words: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """The result of a command: its exit code, its output without the last line break, and its errors."""

    code: int
    output: str
    errors: str


Runner: TypeAlias = Callable[[Words], CommandResult]


def run_command(words: Words) -> CommandResult:
    """Run a command of a cloud's command line. Raises ConfigError if it is not installed."""
    if shutil.which(words[0]) is None:
        raise ConfigError.of(
            field=words[0],
            value="no such command",
            allowed="the command line of the cloud, which the guides use, too",
            fix=f"Install `{words[0]}` and log in.",
        )
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    return CommandResult(code=ended.returncode, output=ended.stdout.strip(), errors=ended.stderr.strip())
