"""The engine as a process; shell scripts stand in for it."""

import os
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import pytest
from pulumi.automation.errors import CommandError

from pulumi_holdfast.rehearsal.engine.process import EngineCommand, EngineProcess
from tests.support.command_line import at_a_terminal, press_ctrl_c

pytestmark = pytest.mark.timeout(60)


def _script(folder: Path, body: str) -> Path:
    file = folder / "pulumi"
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


def _command(
    folder: Path,
    body: str,
    *,
    process: EngineProcess | None = None,
    environment: Mapping[str, str] | None = None,
    on_end: Callable[[], None] = lambda: None,
) -> EngineCommand:
    return EngineCommand(
        executable=_script(folder, body),
        environment=environment or {"PATH": os.defpath},
        process=process or EngineProcess(),
        on_end=on_end,
    )


def _code(command: EngineCommand) -> int | None:
    return command.last.code if command.last else None


def test_killing_the_engine_kills_its_plugins(tmp_path: Path) -> None:
    process, plugin, started = EngineProcess(), tmp_path / "plugin.pid", threading.Event()
    # `sleep` plays a plugin in a process group of its own.
    command = _command(
        tmp_path, f"setsid sleep 600 & echo $! > {plugin}; echo started; wait", process=process
    )

    def kill_once_started() -> None:
        started.wait(30)
        process.kill()

    killer = threading.Thread(target=kill_once_started)
    killer.start()
    with pytest.raises(CommandError):
        command.run(["up"], str(tmp_path), {}, lambda _: started.set())
    killer.join()
    assert _code(command) == -signal.SIGKILL
    pid = int(plugin.read_text())
    gone = not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert gone


def test_ctrl_c_shuts_the_engine_down_gracefully(tmp_path: Path) -> None:
    seen: list[str] = []

    def once_started(line: str) -> None:
        seen.append(line)
        if line == "started":
            press_ctrl_c()

    in_order = "trap 'echo ended in order; exit 1' INT; echo started; while :; do sleep 0.05; done"
    with at_a_terminal(), pytest.raises(KeyboardInterrupt):
        _command(tmp_path, in_order).run(["up"], str(tmp_path), {}, once_started)
    assert seen == ["started", "ended in order"]
