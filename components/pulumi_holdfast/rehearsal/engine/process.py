"""The engine's process, and the program that it runs: interrupting, killing, and cleaning up after both."""

import asyncio
import signal
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import grpc
import psutil
from pulumi import RunError
from pulumi.automation import CommandResult, PulumiCommand
from pulumi.automation.errors import create_command_error
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS  # pyright: ignore[reportPrivateUsage] - the SDK has no other setting
from semver import VersionInfo

from pulumi_holdfast.rehearsal.errors import FAILURES

# The minimum that the tool lookup guarantees; the Automation API chooses the event transport by it.
_ENGINE_VERSION = VersionInfo(3, 245, 0)

# A process survives SIGKILL only during a disk access.
_KILLED_SECONDS = 10.0
# Operations may take longer; the program is cancelled after this.
_ORDERLY_SECONDS = 10.0

OnLine = Callable[[str], None]


class EngineProcess:
    """The engine's process, while a command runs."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[str] | None = None

    def started(self, process: subprocess.Popen[str]) -> None:
        """Record the engine's process."""
        self._running = process

    def ended(self) -> None:
        """Record that the process has ended."""
        self._running = None

    def interrupt(self) -> None:
        """Send SIGINT: the engine finishes running operations and stops."""
        if self._running is not None:
            self._running.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill the engine and its child processes, and wait for their end; do nothing where it does not run."""
        if self._running is None:
            return
        with suppress(psutil.NoSuchProcess):
            engine = psutil.Process(self._running.pid)
            # Plugins have their own process groups. The engine is killed first, because it would report their end.
            family = [engine, *engine.children(recursive=True)]
            for process in family:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(family[1:], timeout=_KILLED_SECONDS)


class EngineCommand(PulumiCommand):
    """The `pulumi` command, with a fixed environment and its own session.

    `environment` is the whole environment of the command; `process` records its process; `on_end` is called after
    each command, also a failed one.
    Only this process receives Ctrl-C. It forwards the first one, and the engine shuts down gracefully.
    """

    def __init__(
        self,
        *,
        executable: Path,
        environment: Mapping[str, str],
        process: EngineProcess,
        on_end: Callable[[], None],
    ) -> None:
        # The base class would run the command for its version, which the tool lookup has checked (0.3 s).
        self.command = str(executable)
        self.version = _ENGINE_VERSION
        self.last: CommandResult | None = None
        self._environment = environment
        self._process = process
        self._on_end = on_end
        self._flags: tuple[str, ...] = ()

    @contextmanager
    def adding(self, *flags: str) -> Generator[None]:
        """Add flags that the Automation API does not support to the commands inside the block."""
        self._flags = flags
        try:
            yield
        finally:
            self._flags = ()

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: OnLine | None = None,
        on_error: OnLine | None = None,
    ) -> CommandResult:
        """Run one command. Raises CommandError where it fails."""
        said: dict[str, list[str]] = {"stdout": [], "stderr": []}
        running = subprocess.Popen(
            [self.command, "--non-interactive", *args, *self._flags],
            cwd=cwd,
            env={**self._environment, **additional_env, "PULUMI_AUTOMATION_API": "true"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        streams = ((running.stdout, said["stdout"], on_output), (running.stderr, said["stderr"], on_error))
        readers = [_reader(*stream) for stream in streams]
        try:
            self._process.started(running)
            for reader in readers:
                reader.start()
            running.wait()
        except BaseException:
            self._end(running)
            raise
        finally:
            _finish(readers, streams)
            self._process.ended()
            self._on_end()
        self.last = CommandResult(
            stdout="\n".join(said["stdout"]), stderr="\n".join(said["stderr"]), code=running.returncode
        )
        if self.last.code != 0:
            raise create_command_error(self.last)
        return self.last

    def _end(self, running: subprocess.Popen[str]) -> None:
        """Shut the engine down gracefully, then the program; a second Ctrl-C kills the engine."""
        self._process.interrupt()
        try:
            try:
                running.wait(_ORDERLY_SECONDS)
            except subprocess.TimeoutExpired:
                self._on_end()
                running.wait()
        except BaseException:
            self._process.kill()
            raise


def engine_environment(user: Mapping[str, str]) -> dict[str, str]:
    """Return the user's environment without the settings of Pulumi: account, backend, stack, options."""
    return {name: value for name, value in user.items() if not name.startswith("PULUMI_")}


def _reader(stream: IO[str] | None, said: list[str], on_line: OnLine | None) -> threading.Thread:
    def read() -> None:
        for line in stream or ():
            stripped = line.rstrip()
            said.append(stripped)
            if on_line is not None:
                on_line(stripped)

    return threading.Thread(target=read, daemon=True, name="engine output")


def _finish(
    readers: Iterable[threading.Thread], streams: Iterable[tuple[IO[str] | None, list[str], OnLine | None]]
) -> None:
    """Read to the end and close. An interrupt can arrive before all readers have started."""
    for reader in readers:
        if reader.is_alive():
            reader.join()
    for stream, _, _ in streams:
        if stream is not None:
            stream.close()


# A program that computes for longer after the end of the engine is abandoned.
_END_SECONDS = 10.0
_CLOSE_SECONDS = 0.5


class HostedProgram:
    """Runs a program, a function that registers resources, for the Automation API.

    ConfigError and RehearsalError keep their message. Any other exception is reported in one line, with its
    traceback in `log`.
    """

    def __init__(self, program: Callable[[], None], *, log: Path) -> None:
        self._program = program
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._ended = threading.Event()

    def __call__(self) -> None:
        """Run the program. Raises RunError, of which the engine shows only the message."""
        self._outlive_the_engine()
        try:
            self._program()
        except RunError:
            raise
        except FAILURES as refusal:
            raise RunError(str(refusal)) from None
        except Exception as fault:  # noqa: BLE001 - the last frame before the engine, which would print it all
            self._log.parent.mkdir(parents=True, exist_ok=True)
            self._log.write_text(traceback.format_exc(), encoding="utf-8")
            reason = f"{type(fault).__name__}: {fault}"
            raise RunError(f"the program failed: {reason} (traceback: {self._log})") from None

    def end(self) -> None:
        """Cancel the program after the end of the engine, and wait for it; do nothing where it does not run."""
        if self._loop is None or self._task is None or self._loop.is_closed():
            return
        if not self._ended.is_set():
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._ended.wait(_END_SECONDS)
        # The Automation API does not close its loop after a killed engine, because its own log call fails before.
        deadline = time.monotonic() + _CLOSE_SECONDS
        while not self._loop.is_closed() and time.monotonic() < deadline:
            time.sleep(_CLOSE_SECONDS / 20)
        with suppress(RuntimeError):
            self._loop.close()

    def _outlive_the_engine(self) -> None:
        """Keep the event loop running after calls to a killed engine fail, until `end`.

        The Automation API would stop the loop in the middle of the program, and the garbage collector would run its
        cleanup and fail.
        """
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._ended.clear()
        self._loop.set_exception_handler(_ignore_lost_calls)
        if self._task is not None:
            self._task.add_done_callback(lambda _: self._ended.set())


def _ignore_lost_calls(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    if not isinstance(context.get("exception"), grpc.RpcError):
        loop.default_exception_handler(context)


# The SDK has no public way to its channels' options.

_OWN_CONNECTIONS = ("grpc.use_local_subchannel_pool", 1)


def use_separate_connections() -> None:
    """Give each run of a program its own gRPC connections; one call per process is enough.

    By default gRPC shares connections by address within a process, including their backoff. The channels of a killed
    engine survive, so calls to the next engine on the same port fail for up to two minutes with "Connection refused",
    although it listens. This happened in about one of a hundred runs.
    """
    if _OWN_CONNECTIONS not in _GRPC_CHANNEL_OPTIONS:
        _GRPC_CHANNEL_OPTIONS.append(_OWN_CONNECTIONS)
