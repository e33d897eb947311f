"""The processes that a fault run kills and starts again: the control plane's, and the fallback controller."""

import subprocess
import sys
import threading
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from pulumi_holdfast.rehearsal.control_plane.configuration import (
    COMPONENTS,
    Layout,
    answers_ready,
    read_cluster,
)
from pulumi_holdfast.rehearsal.control_plane.processes import RunningProcess, free_ports, processes_in
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.operator_runner.controllers import FALLBACK, LOOPBACK

API_SERVER: Final = "kube-apiserver"
ETCD: Final = "etcd"
#: Simulates the kubelets.
_KWOK: Final = "kwok-controller"
_READY_SECONDS: Final = 120
_LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True, kw_only=True)
class _Program:
    arguments: tuple[str, ...]
    folder: str
    variables: dict[str, str]


class Servers:
    """The processes of a running control plane; their command lines are recorded at the start."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._programs = {each.name: _program(each.process) for each in self._running(COMPONENTS)}
        self._pause = threading.Event()

    def kill(self, names: Collection[str]) -> None:
        """Kill these processes, start them again, and return when the API server is ready.

        Other processes of the control plane that ended in the meantime are started again too. Raises RehearsalError if the
        API server does not become ready.
        """
        self._end(names)
        server = read_cluster(self._layout.kubeconfig).server
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            self._start_missing()
            if answers_ready(server=server, pki_dir=self._layout.pki_dir):
                break
            if time.monotonic() > deadline:
                raise RehearsalError(
                    f"{', '.join(sorted(names))} did not come back; see {self._layout.logs_dir}"
                )
            self._pause.wait(_LOOK_SECONDS)

        # A kubelet retries forever. kwok 0.8 does not retry a write whose connection was reset, so that the pod would never
        # end; after a restart it lists all pods.
        self._end({_KWOK})
        self._start_missing()

    def _end(self, names: Collection[str]) -> None:
        ended = [each.process for each in self._running(names)]
        for process in ended:
            process.kill()
        psutil.wait_procs(ended, timeout=10)

    def _start_missing(self) -> None:
        running = {each.name for each in self._running(self._programs)}
        for name, program in self._programs.items():
            if name not in running:
                self._start(name, program)

    def _start(self, name: str, program: _Program) -> None:
        with (self._layout.logs_dir / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                program.arguments,
                cwd=program.folder,
                env=program.variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        # Reap the process when it ends.
        threading.Thread(target=process.wait, name=name, daemon=True).start()

    def _running(self, names: Collection[str]) -> list[RunningProcess]:
        return processes_in(self._layout.cluster_dir, names)


def _program(process: psutil.Process) -> _Program:
    return _Program(
        arguments=tuple(process.cmdline()), folder=str(Path(process.cwd())), variables=process.environ()
    )


_CHECKOUT: Final = Path(__file__).resolve().parents[3]
_GRACE_SECONDS: Final = 20


class RestartedController:
    """Runs a controller, and starts another as soon as it ends, until `end`. `deaths` counts the kills."""

    def __init__(self, kubeconfig: Path, log: Path, *arguments: str) -> None:
        self.deaths = 0
        self._kubeconfig = kubeconfig
        self._log = log
        self._arguments = arguments
        self._is_wanted = True
        self._lock = threading.Lock()
        self._process = self._start()
        self._restarter = threading.Thread(
            target=self._restart_when_ended, name="restart the controller", daemon=True
        )
        self._restarter.start()

    def kill(self) -> None:
        """Kill the current process; another one starts."""
        with self._lock:
            self.deaths += 1
            self._process.kill()

    def end(self) -> None:
        """End the controller."""
        with self._lock:
            self._is_wanted = False
            self._process.terminate()
        try:
            self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._restarter.join()

    def _restart_when_ended(self) -> None:
        while True:
            self._process.wait()
            with self._lock:
                if not self._is_wanted:
                    return
                self._process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        (port,) = free_ports(1)
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", FALLBACK, "--kubeconfig", str(self._kubeconfig)),
                    *("--address", LOOPBACK, "--port", str(port)),
                    *self._arguments,
                ],
                cwd=_CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


@contextmanager
def restarted_controller(kubeconfig: Path, log: Path, *arguments: str) -> Generator[RestartedController]:
    """A controller with these arguments for the length of the block."""
    controller = RestartedController(kubeconfig, log, *arguments)
    try:
        yield controller
    finally:
        controller.end()
