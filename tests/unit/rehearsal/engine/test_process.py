"""The engine as a process; shell scripts stand in for it."""

import os
import signal
import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import psutil
import pytest
from pulumi.automation.errors import CommandError
from pulumi.runtime.proto import resource_pb2, resource_pb2_grpc
from pulumi.runtime.settings import Settings, get_monitor

from pulumi_holdfast.rehearsal.engine.process import (
    EngineCommand,
    EngineProcess,
    engine_environment,
    use_separate_connections,
)
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


def test_a_command_runs_non_interactively_and_its_output_is_read(tmp_path: Path) -> None:
    seen: list[str] = []
    result = _command(tmp_path, 'echo "$@"; echo oops >&2').run(["up"], str(tmp_path), {}, seen.append)
    assert seen == ["--non-interactive up"], "the engine could ask a question, or a line was lost"
    assert (result.stdout, result.stderr, result.code) == ("--non-interactive up", "oops", 0)


def test_flags_are_added_inside_the_block_alone(tmp_path: Path) -> None:
    command = _command(tmp_path, 'echo "$@"')
    with command.adding("--clear"):
        inside = command.run(["refresh"], str(tmp_path), {})
    after = command.run(["refresh"], str(tmp_path), {})
    assert inside.stdout.endswith("refresh --clear")
    assert after.stdout.endswith("refresh")


def test_a_command_that_fails_raises_is_remembered_and_ends(tmp_path: Path) -> None:
    ends: list[str] = []
    command = _command(tmp_path, "echo broken >&2; exit 3", on_end=lambda: ends.append("ended"))
    with pytest.raises(CommandError):
        command.run(["up"], str(tmp_path), {})
    assert _code(command) == 3
    assert ends == ["ended"], "the program would be left running"


def test_the_engine_sees_only_the_given_environment(tmp_path: Path) -> None:
    command = _command(tmp_path, "env", environment={"PATH": os.defpath, "ONE": "1"})
    seen = command.run([], str(tmp_path), {"TWO": "2"}).stdout.splitlines()
    assert {"ONE=1", "TWO=2"} <= set(seen)
    assert not any(line.startswith("HOME=") for line in seen)
    user = {"PULUMI_ACCESS_TOKEN": "x", "PULUMI_BACKEND_URL": "https://…", "PATH": "/bin"}
    assert engine_environment(user) == {"PATH": "/bin"}, "a rehearsal would reach an account"


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


def test_killing_a_finished_engine_does_nothing() -> None:
    process = EngineProcess()
    process.kill()
    process.interrupt()
    process.ended()


class _Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """An engine's monitor that has every feature."""

    def SupportsFeature(  # noqa: N802 - the protocol's name
        self, request: resource_pb2.SupportsFeatureRequest, context: grpc.ServicerContext
    ) -> resource_pb2.SupportsFeatureResponse:
        return resource_pb2.SupportsFeatureResponse(hasSupport=True)


@contextmanager
def _engine(port: int = 0) -> Generator[int]:
    server = grpc.server(ThreadPoolExecutor(max_workers=1))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(_Monitor(), server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield bound
    finally:
        server.stop(grace=None).wait()


def _run_at(port: int) -> resource_pb2_grpc.ResourceMonitorStub:
    Settings(project="holdfast", stack="dev", monitor=f"127.0.0.1:{port}")
    monitor = get_monitor()
    assert isinstance(monitor, resource_pb2_grpc.ResourceMonitorStub)
    return monitor


def _is_answered(run: resource_pb2_grpc.ResourceMonitorStub) -> bool:
    try:
        run.SupportsFeature(resource_pb2.SupportsFeatureRequest(id="secrets"), timeout=10)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
    except grpc.RpcError:
        return False
    return True


def test_a_new_engine_on_the_port_of_a_killed_one_is_reachable() -> None:
    use_separate_connections()
    with _engine() as port:
        of_the_killed = _run_at(port)
        assert _is_answered(of_the_killed)
    assert not _is_answered(of_the_killed)
    with _engine(port):
        assert _is_answered(_run_at(port))
