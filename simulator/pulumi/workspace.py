"""The Automation API's workspace and stack, without the commands whose answers are known here already."""

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
from pulumi.automation._stack import StackInitMode  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
from pulumi.automation.errors import StackNotFoundError

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi.process import EngineCommand
from holdfast.simulator.pulumi.settings import read_yaml, rehearsed_project, rehearsed_stack, write_yaml


@dataclass(frozen=True, kw_only=True)
class EngineFolder:
    """What the engine keeps of one stack: project copy, state, home and passphrase.

    Creates nothing before `prepare`.
    """

    root: Path

    @classmethod
    def of(cls, stack: str, workspace: Workspace) -> "EngineFolder":
        """Return the folder of a stack."""
        return cls(root=workspace.stack_dir(stack) / "engine")

    @property
    def project(self) -> Path:
        """The copy of the project and stack file."""
        return self.root / "project"

    @property
    def state(self) -> Path:
        """The file backend."""
        return self.root / "state"

    @property
    def home(self) -> Path:
        """The engine's home: its plugins and its own settings."""
        return self.root / "home"

    @property
    def passphrase(self) -> Path:
        """The file with the passphrase of this stack's secrets."""
        return self.root / "passphrase"

    @property
    def cloud_states(self) -> Path:
        """The state files of the simulated clouds."""
        return self.root / "clouds"

    def environment(self) -> dict[str, str]:
        """Return what points the engine here: no account, no question, no download."""
        return {
            "PULUMI_HOME": str(self.home),
            # Without `skip` each state file has a second one beside it that is not written at one stroke: a run
            # killed at that moment leaves it cut off, and then no command reads the state any more.
            "PULUMI_BACKEND_URL": f"file://{self.state}?metadata=skip",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.passphrase),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "REHEARSAL_PYTHON": sys.executable,
        }

    def checkpoint(self, project: str, stack: str) -> Path:
        """Return the file with the stack's state."""
        return self.state / ".pulumi" / "stacks" / project / f"{stack}.json"

    def locks(self, project: str, stack: str) -> Path:
        """Return the folder with the stack's locks."""
        return self.state / ".pulumi" / "locks" / "organization" / project / stack

    def prepare(self, *, project: Json, stack: str, settings: Json) -> None:
        """Make the folders and copy the project and the stack's settings; the tracked files stay untouched."""
        for folder in (self.project, self.state, self.home, self.cloud_states):
            folder.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o700)
        if not self.passphrase.exists():
            self.passphrase.touch(mode=0o600)
            self.passphrase.write_text(secrets.token_urlsafe(32), encoding="ascii")
        write_yaml(self.project / "Pulumi.yaml", rehearsed_project(project))
        copy = self.project / f"Pulumi.{stack}.yaml"
        write_yaml(copy, rehearsed_stack(settings, previous=read_yaml(copy)))


# Clock and process table round differently; a process this much younger than the lock is another one.
_CLOCK_SLACK_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lock file of the file backend: the process that wrote it, the machine, and when (seconds, Unix time)."""

    file: Path
    pid: int
    hostname: str
    written: float


def read_locks(folder: Path) -> tuple[Lock, ...]:
    """Return the locks in a folder; one that is no lock file, or not yet written in full, is left out."""
    return tuple(lock for lock in map(_read_lock, sorted(folder.glob("*.json"))) if lock is not None)


def is_held(lock: Lock, *, hostname: str, started: Callable[[int], float | None]) -> bool:
    """Whether the process behind a lock may still run.

    `started` returns when the engine process with that id was started, None where there is none. What
    another machine wrote cannot be judged from here, and counts as held.
    """
    if lock.hostname != hostname:
        return True
    since = started(lock.pid)
    return since is not None and since <= lock.written + _CLOCK_SLACK_SECONDS


def engine_started(pid: int) -> float | None:
    """Return when the engine with this process id was started, in Unix time; None where it does not run."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE or not process.name().startswith("pulumi"):
            return None
        return process.create_time()
    except psutil.NoSuchProcess:
        return None


def release_stale_locks(folder: Path, *, stack: str) -> int:
    """Remove the locks whose processes are dead and return how many there were.

    Raises RehearsalError where a living run holds one.
    """
    locks, hostname = read_locks(folder), socket.gethostname()
    for lock in locks:
        if is_held(lock, hostname=hostname, started=engine_started):
            raise RehearsalError(
                f"stack {stack} is locked: process {lock.pid} on {lock.hostname} is at work on it; "
                f"wait for it, or end it, then try again (lock: {lock.file})"
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

    The Automation API starts the command some seven times for one `up`; with what this class answers from
    files and events it is once, and twice for a stack that is new.
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
        """Look the stack up in the file backend. Raises StackNotFoundError where it is not there."""
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
        """Return nothing: outputs are taken from events, where secrets are hidden; the command would show them."""
        return {}


class EngineStack(Stack):
    """One stack of an EngineWorkspace, made where it is not there."""

    def __init__(self, name: str, workspace: EngineWorkspace) -> None:
        super().__init__(name, workspace, StackInitMode.CREATE_OR_SELECT)

    def info(self, show_secrets: bool = True) -> UpdateSummary:  # noqa: ARG002 - the base class's signature
        """Return an empty summary: counts and durations are taken from events."""
        return UpdateSummary(
            kind="update",
            start_time=datetime.now(tz=UTC),
            message="",
            environment={},
            config={},
            result="succeeded",
        )
