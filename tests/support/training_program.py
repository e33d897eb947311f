"""The training programs of the examples: loaded as modules, and run as processes that can be killed."""

import importlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

TRAINING: Final = Path(__file__).parents[2] / "examples" / "training"
_BEGAN: Final = re.compile(r"continues from step (\d+)")
_STEP: Final = re.compile(r"step (\d+)\b")
_DONE: Final = re.compile(r"has trained \d+ steps: (\[.*\])")
_MODULES: Final = ("train", "checkpoints", "progress")


def loaded(monkeypatch: pytest.MonkeyPatch, name: str, environment: Mapping[str, str]) -> Any:
    """A program as a module, under an environment; forgotten when the test ends."""
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys, "path", [str(TRAINING), *sys.path])
    for module in _MODULES:
        # Set first, so that what the import leaves there is undone as well.
        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.delitem(sys.modules, module)
    return importlib.import_module(name)


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One process of a training program: where it began, the steps it took, how it ended.

    `weights`: what it printed at its end, None where it did not get there.
    """

    began: int | None
    steps: tuple[int, ...]
    code: int
    weights: str | None
    said: str


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of a training program, of several attempts: `python` and `program` are files, `environment` is added."""

    program: Path
    environment: Mapping[str, str]
    python: Path = Path(sys.executable)

    def attempt(
        self, *, end: signal.Signals | None = None, after: int = 0, victim: str | None = None
    ) -> Attempt:
        """Run it; once it has taken so many steps, end it by a signal, or let it end.

        `victim` is a pattern whose group is the process that gets the signal, as the program prints it; None: it all.
        """
        process = subprocess.Popen(
            [self.python, self.program],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        lines: list[str] = []
        try:
            assert process.stdout, "it is a pipe"
            for line in process.stdout:
                lines.append(line)
                if end is not None and len(_steps(lines)) >= after:
                    if victim is None:
                        os.killpg(process.pid, end)
                    else:
                        os.kill(_victim(victim, lines), end)
                    end = None
            code = process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if process.stdout:
                process.stdout.close()
        said = "".join(lines)
        began, done = _BEGAN.search(said), _DONE.search(said)
        return Attempt(
            began=int(began[1]) if began else None,
            steps=_steps(lines),
            code=code,
            weights=done[1] if done else None,
            said=said,
        )


def _victim(pattern: str, lines: list[str]) -> int:
    found = re.search(pattern, "".join(lines))
    assert found, f"{pattern} is in what was printed"
    return int(found[1])


def _steps(lines: list[str]) -> tuple[int, ...]:
    found = (_STEP.search(line) for line in lines if not _BEGAN.search(line) and "after step" not in line)
    return tuple(int(each[1]) for each in found if each)
