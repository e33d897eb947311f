"""Where the operator host of one stack keeps its files."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from holdfast.simulator.control_plane.configuration import Layout, read_cluster
from holdfast.simulator.control_plane.processes import (
    end_processes,
    exclusive_lock,
    processes_in,
    python_modules_in,
)
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.operator_runner.controllers import CONTROLLERS
from holdfast.simulator.operator_runner.process import open_log
from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.locate import find_tool


@dataclass(frozen=True, kw_only=True)
class RunnerLayout:
    """The files of an operator host. Creates nothing."""

    stack: str
    folder: Path
    logs: Path
    kubeconfig: Path
    egress_socket: Path

    @classmethod
    def of(cls, stack: str, workspace: Workspace) -> "RunnerLayout":
        """The files of `stack`'s operator host in `workspace`."""
        control_plane = Layout.of(stack, workspace)
        return cls(
            stack=stack,
            folder=control_plane.stack_dir / "hosting",
            logs=workspace.logs_dir(stack).resolve(),
            kubeconfig=control_plane.kubeconfig,
            egress_socket=control_plane.egress_socket,
        )

    @property
    def record(self) -> Path:
        """By whom the stack's operators are hosted."""
        return self.folder / "host.json"

    @property
    def lock(self) -> Path:
        """Held by the one run that starts or stops the host."""
        return self.folder.with_suffix(".lock")

    @property
    def pods(self) -> Path:
        """One folder per hosted pod."""
        return self.folder / "pods"

    @property
    def log(self) -> Path:
        """The host's own log."""
        return self.logs / "operator-host.log"


# The kernel counts from its boot, and when that was moves a little when the clock is set right.
CLOCK_DRIFT_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class RunnerRecord:
    """Which process is the host, the API server it works for, and whether it is ready.

    A pid alone proves nothing: after the host's death another process may get it. `started` is when the
    process with this pid began, in seconds since the epoch.
    """

    pid: int
    started: float
    server: str
    ready: bool

    @classmethod
    def of(cls, process: psutil.Process, server: str, *, ready: bool) -> "RunnerRecord":
        """The record of a process that runs."""
        return cls(pid=process.pid, started=process.create_time(), server=server, ready=ready)

    def process(self) -> psutil.Process | None:
        """The process, if it still is the one that was recorded."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < CLOCK_DRIFT_SECONDS
            ended = process.status() == psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return None
        return process if same and not ended else None

    def write(self, path: Path) -> None:
        """Write the record in one step: a reader sees all of it or nothing."""
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(path)


def read_record(path: Path) -> RunnerRecord | None:
    """The record at `path`; None where there is none or it makes no sense."""
    try:
        fields = json.loads(path.read_text())
        return RunnerRecord(
            pid=int(fields["pid"]),
            started=float(fields["started"]),
            server=str(fields["server"]),
            ready=bool(fields["ready"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


MODULE = "holdfast.simulator.operator_runner"
START_SECONDS = 60
# Longer than the longest grace a controller's pod asks for (30 s): the host waits for its processes.
GRACE_SECONDS = 40


class OperatorRunner:
    """The background process that runs the operators of one stack.

    `report` is told, a line at a time, what is being done.
    """

    def __init__(self, workspace: Workspace, stack: str, *, report: Callable[[str], None] = print) -> None:
        self._workspace = workspace
        self._layout = RunnerLayout.of(stack, workspace)
        self._report = report

    @property
    def layout(self) -> RunnerLayout:
        """Where its files are."""
        return self._layout

    def start(self) -> None:
        """Start the host, and return once it watches pods. One that runs for this API server is left as it is.

        Needs the stack's control plane. Raises RehearsalError where a controller's program is missing, or the
        host does not come up.
        """
        with exclusive_lock(self._layout.lock, doing="start the operator host"):
            server = read_cluster(self._layout.kubeconfig).server
            if self.running() and self._serves(server):
                return
            for tool in _tools():
                find_tool(tool, self._workspace)
            self._end_all()
            self._wait_until_ready(self._spawn(server))

    def stop(self) -> None:
        """End the host and every controller it runs. Harmless when none runs."""
        with exclusive_lock(self._layout.lock, doing="stop the operator host"):
            self._end_all()

    def running(self) -> bool:
        """Whether the host runs and is ready."""
        record = read_record(self._layout.record)
        return record is not None and record.ready and record.process() is not None

    def _serves(self, server: str) -> bool:
        record = read_record(self._layout.record)
        if record is None or record.server == server:
            return record is not None
        self._report("the operator host works for a control plane that has gone: starting it again")
        return False

    def _spawn(self, server: str) -> "subprocess.Popen[bytes]":
        self._layout.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        packages = str(Path(__file__).resolve().parents[2])
        root = str(self._workspace.project_root.resolve())
        with open_log(self._layout.log) as log:
            host = subprocess.Popen(
                [sys.executable, "-m", MODULE, self._layout.stack, root],
                cwd=self._layout.folder,
                env={**os.environ, "PYTHONPATH": packages},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        RunnerRecord.of(psutil.Process(host.pid), server, ready=False).write(self._layout.record)
        # It outlives most of those who start it; whoever lives longer shall not keep its corpse.
        threading.Thread(target=host.wait, name="operator host", daemon=True).start()
        return host

    def _wait_until_ready(self, host: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.running():
            if host.poll() is not None or time.monotonic() > deadline:
                self._end_all()
                lines = self._layout.log.read_text(errors="replace").strip().splitlines()[-6:]
                raise RehearsalError("the operator host did not come up; it said:\n" + "\n".join(lines))
            time.sleep(0.1)

    def _end_all(self) -> None:
        end_processes(python_modules_in(self._layout.folder, MODULE), grace_seconds=GRACE_SECONDS)
        # A host that was killed takes its controllers with it where the kernel can do that; elsewhere they are here.
        modules = [each.module for each in CONTROLLERS.values() if each.module]
        orphans = [each for module in modules for each in python_modules_in(self._layout.folder, module)]
        end_processes([*processes_in(self._layout.folder, _tools()), *orphans], grace_seconds=GRACE_SECONDS)
        self._layout.record.unlink(missing_ok=True)


def _tools() -> list[str]:
    return [controller.tool for controller in CONTROLLERS.values() if controller.module is None]
