"""Starts and stops the operator runner of a stack; defines its paths and its record."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from pulumi_holdfast.rehearsal.control_plane.configuration import Layout, read_cluster
from pulumi_holdfast.rehearsal.control_plane.processes import (
    end_processes,
    exclusive_lock,
    processes_in,
    python_modules_in,
)
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.operator_runner.controllers import CONTROLLERS
from pulumi_holdfast.rehearsal.operator_runner.process import open_log
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.locate import find_tool


@dataclass(frozen=True, kw_only=True)
class RunnerLayout:
    """The paths of an operator runner. Creates none of them."""

    stack: str
    folder: Path
    logs: Path
    kubeconfig: Path
    egress_socket: Path
    pki: Path

    @classmethod
    def of(cls, stack: str, workspace: Workspace) -> "RunnerLayout":
        """The paths of the operator runner of `stack` in `workspace`."""
        control_plane = Layout.of(stack, workspace)
        return cls(
            stack=stack,
            folder=control_plane.stack_dir / "operator-runner",
            logs=workspace.logs_dir(stack).resolve(),
            kubeconfig=control_plane.kubeconfig,
            egress_socket=control_plane.egress_socket,
            pki=control_plane.pki_dir,
        )

    @property
    def record(self) -> Path:
        """The record of the running runner."""
        return self.folder / "runner.json"

    @property
    def lock(self) -> Path:
        """The lock of the run that starts or stops the runner."""
        return self.folder.with_suffix(".lock")

    @property
    def pods(self) -> Path:
        """One folder per pod."""
        return self.folder / "pods"

    @property
    def training(self) -> Path:
        """One folder per training pod, and the programs of images."""
        return self.folder / "training"

    @property
    def log_socket(self) -> Path:
        """The socket that serves the logs of training pods; beside the other one, whose path is short enough."""
        return self.egress_socket.with_name("logs.sock")

    @property
    def log(self) -> Path:
        """The log of the runner."""
        return self.logs / "operator-runner.log"


@dataclass(frozen=True, kw_only=True)
class RunnerRecord:
    """The API server that a runner uses, and whether the runner is ready."""

    server: str
    ready: bool

    def write(self, path: Path) -> None:
        """Write the record atomically."""
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(path)


def read_record(path: Path) -> RunnerRecord | None:
    """The record at `path`; None if it is missing or invalid."""
    try:
        fields = json.loads(path.read_text())
        return RunnerRecord(server=str(fields["server"]), ready=bool(fields["ready"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


MODULE = "pulumi_holdfast.rehearsal.stacks.run_operators"
START_SECONDS = 60
# Longer than the longest termination grace period of a controller (30 s), because the runner waits for it.
GRACE_SECONDS = 40


class OperatorRunner:
    """Starts and stops the background process that runs the operators of one stack.

    `report` receives one line for each step.
    """

    def __init__(self, workspace: Workspace, stack: str, *, report: Callable[[str], None] = print) -> None:
        self._workspace = workspace
        self._layout = RunnerLayout.of(stack, workspace)
        self._report = report

    @property
    def layout(self) -> RunnerLayout:
        """The paths of its files."""
        return self._layout

    def start(self) -> None:
        """Start the runner and return when it is ready. A runner for the current API server is not touched.

        Needs the control plane of the stack. Raises RehearsalError if a program is missing or the runner does not
        start.
        """
        with exclusive_lock(self._layout.lock, doing="start the operator runner"):
            server = read_cluster(self._layout.kubeconfig).server
            if self.running() and self._serves(server):
                return
            for tool in _tools():
                find_tool(tool, self._workspace)
            self._end_all()
            self._wait_until_ready(self._spawn(server))

    def stop(self) -> None:
        """End the runner and every controller. Does nothing when none runs."""
        with exclusive_lock(self._layout.lock, doing="stop the operator runner"):
            self._end_all()

    def running(self) -> bool:
        """Whether the runner runs and is ready."""
        record = read_record(self._layout.record)
        return record is not None and record.ready and bool(python_modules_in(self._layout.folder, MODULE))

    def _serves(self, server: str) -> bool:
        record = read_record(self._layout.record)
        if record is None or record.server == server:
            return record is not None
        self._report("restarting the operator runner: its control plane no longer exists")
        return False

    def _spawn(self, server: str) -> "subprocess.Popen[bytes]":
        self._layout.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        packages = str(Path(__file__).resolve().parents[3])
        root = str(self._workspace.project_root.resolve())
        RunnerRecord(server=server, ready=False).write(self._layout.record)
        with open_log(self._layout.log) as log:
            runner = subprocess.Popen(
                [sys.executable, "-m", MODULE, self._layout.stack, root],
                cwd=self._layout.folder,
                env={**os.environ, "PYTHONPATH": packages},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        # A parent that lives longer than the runner must not keep a zombie.
        threading.Thread(target=runner.wait, name="operator runner", daemon=True).start()
        return runner

    def _wait_until_ready(self, runner: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.running():
            if runner.poll() is not None or time.monotonic() > deadline:
                self._end_all()
                lines = self._layout.log.read_text(errors="replace").strip().splitlines()[-6:]
                raise RehearsalError(
                    "the operator runner did not start; its log ends with:\n" + "\n".join(lines)
                )
            time.sleep(0.1)

    def _end_all(self) -> None:
        end_processes(python_modules_in(self._layout.folder, MODULE), grace_seconds=GRACE_SECONDS)
        # On Linux the controllers die with a killed runner; on other systems they still run.
        modules = [each.module for each in CONTROLLERS.values() if each.module]
        orphans = [each for module in modules for each in python_modules_in(self._layout.folder, module)]
        end_processes([*processes_in(self._layout.folder, _tools()), *orphans], grace_seconds=GRACE_SECONDS)
        self._layout.record.unlink(missing_ok=True)


def _tools() -> list[str]:
    return [controller.tool for controller in CONTROLLERS.values() if controller.module is None]
