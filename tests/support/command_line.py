"""Runs commands as a user does: `holdfast`, the engine's commands on a stack, and Ctrl-C."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pulumi_holdfast.rehearsal.engine import CommandOutcome, Rehearsal
from pulumi_holdfast.rehearsal.engine.faults import Faults
from tests.support.clusters.control_plane import CHECKOUT


def command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a project's folder, without this process's environment."""
    return subprocess.run(
        [sys.executable, "-m", "pulumi_holdfast.cli", *arguments],
        cwd=root,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )


def refusal(root: Path, *arguments: str) -> str:
    """Run a command that must fail, and return its error output."""
    ended = command(root, *arguments)
    assert ended.returncode == 1, f"exit code 1: {ended.stdout}{ended.stderr}"
    assert ended.stderr.startswith("error: "), "the message is marked as an error"
    assert "Traceback" not in ended.stdout + ended.stderr, "a traceback reached the user"
    return ended.stderr


def press_ctrl_c() -> None:
    """Interrupt the test's own thread, as a terminal does."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@contextmanager
def at_a_terminal() -> Generator[None]:
    """Let Ctrl-C interrupt inside the block: background jobs of a shell ignore it, with their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


Program: TypeAlias = Callable[[], None]


def nothing() -> None:
    """Register no resource."""


class StackCommands(ABC):
    """The commands of a stack, each in a run of its own."""

    def preview(self, program: Program) -> CommandOutcome:
        """Return what an `up` would do."""
        return self._run(program, Faults(), lambda rehearsal: rehearsal.preview())

    def up(self, program: Program, *, faults: Faults | None = None) -> CommandOutcome:
        """Make everything as the program says."""
        return self._run(program, faults or Faults(), lambda rehearsal: rehearsal.up())

    def refresh(self, program: Program = nothing) -> CommandOutcome:
        """Read what there is."""
        return self._run(program, Faults(), lambda rehearsal: rehearsal.refresh())

    def destroy(self, program: Program = nothing) -> CommandOutcome:
        """Remove everything."""
        return self._run(program, Faults(), lambda rehearsal: rehearsal.destroy())

    @abstractmethod
    def _run(
        self, program: Program, faults: Faults, command: Callable[[Rehearsal], CommandOutcome]
    ) -> CommandOutcome:
        """Run one command on the real engine."""


_STEP = re.compile(r"^ - +(\S+ \S+) (deleting|deleted)\b")


@dataclass(frozen=True, kw_only=True)
class Deletions:
    """When each resource's deletion began and when it was done: places in the log, by `type name`."""

    began: dict[str, int] = field(default_factory=dict[str, int])
    done: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def told_in(cls, stdout: str) -> Deletions:
        """Read the output of a destroy."""
        found = cls()
        for place, line in enumerate(stdout.splitlines()):
            step = _STEP.match(line)
            if step:
                at = found.began if step[2] == "deleting" else found.done
                at.setdefault(step[1], place)
        return found

    def matching(self, pattern: str) -> Sequence[str]:
        """The deleted resources of a pattern: the end of a type and the begin of a name, or the begin of a type."""
        kind, _, name = pattern.partition(" ")
        return [one for one in self.done if self._is(one, kind, name)]

    def too_early(self, first: Sequence[str], then: Sequence[str]) -> Sequence[str]:
        """Return the resources of `then` whose deletion began before all of `first` were deleted."""
        last = max(self.done[one] for one in first)
        return [one for one in then if self.began[one] < last]

    @staticmethod
    def _is(resource: str, kind: str, name: str) -> bool:
        type_token, _, own = resource.partition(" ")
        fits = type_token.endswith(kind) if kind.startswith(":") else type_token == kind
        return own.startswith(name) and (fits or (kind.endswith(":") and type_token.startswith(kind)))
