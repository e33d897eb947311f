"""The engine's files of one stack: project copy, checkpoint, locks, and the Automation API's workspace."""

import json
import secrets
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import psutil
from pulumi.automation import CommandResult, LocalWorkspace, OutputMap, Stack, UpdateSummary
from pulumi.automation._stack import StackInitMode  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage] - exported nowhere
from pulumi.automation.errors import StackNotFoundError

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.engine.process import EngineCommand
from pulumi_holdfast.rehearsal.engine.settings import (
    read_yaml,
    rehearsed_project,
    rehearsed_stack,
    write_yaml,
)
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace


@dataclass(frozen=True, kw_only=True)
class EngineFolder:
    """The folder of one stack: project copy, state, home and passphrase.

    Creates nothing before `prepare`.
    """

    root: Path

    @classmethod
    def of(cls, stack: str, workspace: Workspace) -> "EngineFolder":
        """Return the folder of a stack."""
        return cls(root=workspace.stack_dir(stack) / "engine")

    @property
    def project(self) -> Path:
        """The copies of the project and stack files."""
        return self.root / "project"

    @property
    def state(self) -> Path:
        """The file backend."""
        return self.root / "state"

    @property
    def home(self) -> Path:
        """PULUMI_HOME: plugins and settings."""
        return self.root / "home"

    @property
    def passphrase(self) -> Path:
        """The file with the passphrase of the stack's secrets."""
        return self.root / "passphrase"

    @property
    def cloud_states(self) -> Path:
        """The state files of the simulated clouds."""
        return self.root / "clouds"

    def environment(self) -> dict[str, str]:
        """Return the engine's environment: this backend, no account, no prompts, no downloads."""
        return {
            "PULUMI_HOME": str(self.home),
            # Without `skip` the engine writes a second file for each checkpoint, not atomically: after a kill during
            # the write no command can read the state.
            "PULUMI_BACKEND_URL": f"file://{self.state}?metadata=skip",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.passphrase),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "REHEARSAL_PYTHON": sys.executable,
        }

    def checkpoint(self, project: str, stack: str) -> Path:
        """Return the checkpoint file of a stack."""
        return self.state / ".pulumi" / "stacks" / project / f"{stack}.json"

    def locks(self, project: str, stack: str) -> Path:
        """Return the folder with the locks of a stack."""
        return self.state / ".pulumi" / "locks" / "organization" / project / stack

    def prepare(self, *, project: Json, stack: str, settings: Json) -> None:
        """Create the folders and copy the project and stack files; the tracked files do not change."""
        for folder in (self.project, self.state, self.home, self.cloud_states):
            folder.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o700)
        if not self.passphrase.exists():
            self.passphrase.touch(mode=0o600)
            self.passphrase.write_text(secrets.token_urlsafe(32), encoding="ascii")
        write_yaml(self.project / "Pulumi.yaml", rehearsed_project(project))
        copy = self.project / f"Pulumi.{stack}.yaml"
        write_yaml(copy, rehearsed_stack(settings, previous=read_yaml(copy)))


# Clock and process table round differently; a process that is younger than the lock by more is another one.
_CLOCK_SLACK_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lock file of the file backend: its process, host, and time (Unix time in seconds)."""

    file: Path
    pid: int
    hostname: str
    written: float


def read_locks(folder: Path) -> tuple[Lock, ...]:
    """Return the locks in a folder, without other files and incomplete ones."""
    return tuple(lock for lock in map(_read_lock, sorted(folder.glob("*.json"))) if lock is not None)


def is_held(lock: Lock, *, hostname: str, started: Callable[[int], float | None]) -> bool:
    """Whether the process of a lock may still run.

    `started` returns the start time of the engine process with an id, None for no such process. A lock of another
    host counts as held, because its processes are not visible.
    """
    if lock.hostname != hostname:
        return True
    since = started(lock.pid)
    return since is not None and since <= lock.written + _CLOCK_SLACK_SECONDS


def engine_started(pid: int) -> float | None:
    """Return the start time (Unix) of the engine with this process id; None where it does not run."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE or not process.name().startswith("pulumi"):
            return None
        return process.create_time()
    except psutil.NoSuchProcess:
        return None


def release_stale_locks(folder: Path, *, stack: str) -> int:
    """Remove the locks of dead processes and return their number.

    Raises RehearsalError where a running process holds one.
    """
    locks, hostname = read_locks(folder), socket.gethostname()
    for lock in locks:
        if is_held(lock, hostname=hostname, started=engine_started):
            raise RehearsalError(
                f"stack {stack} is locked by process {lock.pid} on {lock.hostname}; "
                f"wait for its end or stop it, then try again (lock: {lock.file})"
            )
    for lock in locks:
        lock.file.unlink(missing_ok=True)
        lock.file.with_name(lock.file.name + ".attrs").unlink(missing_ok=True)
    return len(locks)


def _read_lock(file: Path) -> Lock | None:
    try:
        entry = cast("dict[str, object]", json.loads(file.read_text(encoding="utf-8")))
        return Lock(
            file=file,
            pid=int(str(entry["pid"])),
            hostname=str(entry["hostname"]),
            written=datetime.fromisoformat(str(entry["timestamp"])).timestamp(),
        )
    except (KeyError, ValueError, FileNotFoundError):
        return None


# Public through `Stack.create_or_select`, which makes a plain Stack whatever class it is called on.


class EngineWorkspace(LocalWorkspace):
    """The copied project of one stack on the file backend.

    The Automation API runs about seven commands for one `up`; this class reads files and events instead, so that
    there is one.
    """

    def __init__(
        self, *, folder: EngineFolder, project: str, command: EngineCommand, program: Callable[[], None]
    ) -> None:
        super().__init__(
            work_dir=str(folder.project),
            pulumi_home=str(folder.home),
            program=program,
            pulumi_command=command,
        )
        self._folder = folder
        self._project = project

    def select_stack(self, stack_name: str) -> None:
        """Look up the checkpoint file. Raises StackNotFoundError where it does not exist."""
        if not self._folder.checkpoint(self._project, stack_name).is_file():
            raise StackNotFoundError(
                CommandResult(stdout="", stderr=f"no state of stack {stack_name}", code=1)
            )

    def create_stack(self, stack_name: str) -> None:
        """Write an empty checkpoint, which is what `pulumi stack init` does in 0.5 s; the next run adds the salt.

        Raises RehearsalError where a running command holds the stack's lock.
        """
        release_stale_locks(self._folder.locks(self._project, stack_name), stack=stack_name)
        file = self._folder.checkpoint(self._project, stack_name)
        file.parent.mkdir(parents=True, exist_ok=True)
        empty = {
            "version": 3,
            "checkpoint": {"stack": f"organization/{self._project}/{stack_name}", "latest": None},
        }
        beside = file.with_suffix(".new")
        beside.write_text(json.dumps(empty), encoding="utf-8")
        beside.replace(file)

    def stack_outputs(self, stack_name: str) -> OutputMap:  # noqa: ARG002 - the base class's signature
        """Return nothing: outputs come from events, which hide secrets."""
        return {}


class EngineStack(Stack):
    """One stack of an EngineWorkspace, created where it does not exist."""

    def __init__(self, name: str, workspace: EngineWorkspace) -> None:
        super().__init__(name, workspace, StackInitMode.CREATE_OR_SELECT)

    def info(self, show_secrets: bool = True) -> UpdateSummary:  # noqa: ARG002 - the base class's signature
        """Return an empty summary: counts and durations come from events."""
        return UpdateSummary(
            kind="update",
            start_time=datetime.now(tz=UTC),
            message="",
            environment={},
            config={},
            result="succeeded",
        )
