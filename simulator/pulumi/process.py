"""The engine as a process that can be interrupted, and killed with all it started."""

import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil
from pulumi.automation import CommandResult, PulumiCommand
from pulumi.automation.errors import create_command_error
from semver import VersionInfo

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
