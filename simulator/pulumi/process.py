"""The engine as a process that can be interrupted, and killed with all it started."""

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
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS  # pyright: ignore[reportPrivateUsage]
from semver import VersionInfo

from holdfast.scheduling.errors import ConfigError
from holdfast.simulator.errors import RehearsalError

# What the lookup of the tool promises at least; the Automation API asks for it to choose how events arrive.
_ENGINE_VERSION = VersionInfo(3, 245, 0)

# A process that does not die at once of SIGKILL is in the middle of a disk access.
_KILLED_SECONDS = 10.0
# Operations under way may last longer; a program that is still at work then is waited for in vain.
_ORDERLY_SECONDS = 10.0

OnLine = Callable[[str], None]


class EngineProcess:
    """The engine while it runs; nothing at other times."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[str] | None = None

    def started(self, process: subprocess.Popen[str]) -> None:
        """Note the process that is the engine from now on."""
        self._running = process

    def ended(self) -> None:
        """Note that the engine is gone."""
        self._running = None

    def interrupt(self) -> None:
        """Ask the engine to finish what it has begun and to stop."""
        if self._running is not None:
            self._running.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill the engine, then what it started, and wait until that is gone. Harmless when it does not run."""
        if self._running is None:
            return
        with suppress(psutil.NoSuchProcess):
            engine = psutil.Process(self._running.pid)
            # Plugins lead process groups of their own. The engine dies first, or it would report their end.
            family = [engine, *engine.children(recursive=True)]
            for process in family:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(family[1:], timeout=_KILLED_SECONDS)


class EngineCommand(PulumiCommand):
    """The `pulumi` command: started with a fixed environment, in a session of its own.

    Arguments: `executable`, its file; `environment`, all it sees of the user's; `process`, told of its life;
    `on_end`, called when a command has ended in whatever way.
    Ctrl-C reaches this process alone, which passes it on once: the engine then ends in order.
    """

    def __init__(
        self,
        *,
        executable: Path,
        environment: Mapping[str, str],
        process: EngineProcess,
        on_end: Callable[[], None],
    ) -> None:
        # The base class would start the command to learn a version that the tool lookup has checked (0.3 s).
        self.command = str(executable)
        self.version = _ENGINE_VERSION
        self.last: CommandResult | None = None
        self._environment = environment
        self._process = process
        self._on_end = on_end
        self._flags: tuple[str, ...] = ()

    @contextmanager
    def adding(self, *flags: str) -> Generator[None]:
        """Add flags, for which the Automation API has no parameter, to the commands run inside the block."""
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
        """Run one command to its end. Raises CommandError where it fails."""
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
        """Let the engine end in order, and the program where it waits for that; a second Ctrl-C kills the engine."""
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
    """Return the environment of the user without any setting of an engine: account, backend, stack, options."""
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
    """Read to the end and close. An interruption can come before every reader has begun."""
    for reader in readers:
        if reader.is_alive():
            reader.join()
    for stream, _, _ in streams:
        if stream is not None:
            stream.close()


# A program that computes for longer than this after the engine is gone is left to itself.
_END_SECONDS = 10.0
_CLOSE_SECONDS = 0.5


class HostedProgram:
    """A program as the Automation API takes it: a function that registers resources.

    A refused configuration, or an error raised on purpose, keeps its text. Anything else is a fault of the
    program: named in one line, its traceback kept in `log`.
    """

    def __init__(self, program: Callable[[], None], *, log: Path) -> None:
        self._program = program
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._ended = threading.Event()

    def __call__(self) -> None:
        """Run the program. Raises RunError, which the engine shows as its message alone."""
        self._outlive_the_engine()
        try:
            self._program()
        except RunError:
            raise
        except (ConfigError, RehearsalError) as refusal:
            raise RunError(str(refusal)) from None
        except Exception as fault:  # noqa: BLE001 - the last frame before the engine, which would print it all
            self._log.parent.mkdir(parents=True, exist_ok=True)
            self._log.write_text(traceback.format_exc(), encoding="utf-8")
            reason = f"{type(fault).__name__}: {fault}"
            raise RunError(f"the program failed: {reason} (traceback: {self._log})") from None

    def end(self) -> None:
        """End what still runs once the engine is gone, and wait for it. Harmless when nothing does."""
        if self._loop is None or self._task is None or self._loop.is_closed():
            return
        if not self._ended.is_set():
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._ended.wait(_END_SECONDS)
        # The Automation API closes its loop, unless the engine is gone: then it fails at its own log line before.
        deadline = time.monotonic() + _CLOSE_SECONDS
        while not self._loop.is_closed() and time.monotonic() < deadline:
            time.sleep(_CLOSE_SECONDS / 20)
        with suppress(RuntimeError):
            self._loop.close()

    def _outlive_the_engine(self) -> None:
        """Keep the loop running when calls to a killed engine fail, until `end`.

        The Automation API stops the loop then, in the middle of the program, and nothing ever runs the rest:
        its clean-up would be run by the garbage collector, and fail there.
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
    """Give each run of a program connections of its own. Once is enough.

    gRPC shares them by address within a process, together with their back-off: a killed engine's channels live on, and
    the next engine that happens on the same free port is refused for up to two minutes without being asked. Seen once
    in some hundred runs, "Connection refused" by an engine that listened.
    """
    if _OWN_CONNECTIONS not in _GRPC_CHANNEL_OPTIONS:
        _GRPC_CHANNEL_OPTIONS.append(_OWN_CONNECTIONS)
