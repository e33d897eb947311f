"""The control plane's own processes, killed and started again as they were, where everybody looks for them."""

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

from holdfast.simulator.control_plane.configuration import COMPONENTS, Layout, answers_ready, read_cluster
from holdfast.simulator.control_plane.processes import RunningProcess, free_ports, processes_in
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.operator_runner.controllers import FALLBACK, LOOPBACK

API_SERVER: Final = "kube-apiserver"
ETCD: Final = "etcd"
#: Plays the kubelets.
_KWOK: Final = "kwok-controller"
_READY_SECONDS: Final = 120
_LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True, kw_only=True)
class _Program:
    arguments: tuple[str, ...]
    folder: str
    variables: dict[str, str]


class Servers:
    """The processes of a control plane that runs, which is remembered as it was found."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._programs = {each.name: _program(each.process) for each in self._running(COMPONENTS)}
        self._pause = threading.Event()

    def kill(self, names: Collection[str]) -> None:
        """Kill these without notice, start them again, and return when the API server answers.

        Whatever else of the control plane has ended meanwhile is started again too. Raises RehearsalError where the API
        server does not come back.
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

        # A kubelet tries again for ever. kwok 0.8 gives up on a write whose connection was reset, and the pod that it was
        # about would end never; begun anew it looks at every pod.
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
        # It outlives this run; its corpse shall not.
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
    """Starts a controller, and another as soon as one ends, until it is told to end. `deaths` are so many kills."""

    def __init__(self, kubeconfig: Path, log: Path) -> None:
        self.deaths = 0
        self._kubeconfig = kubeconfig
        self._log = log
        self._is_wanted = True
        self._lock = threading.Lock()
        self._process = self._start()
        self._keeper = threading.Thread(target=self._keep, name="keep the controller", daemon=True)
        self._keeper.start()

    @property
    def pid(self) -> int:
        """The process that runs now."""
        return self._process.pid

    def kill(self) -> None:
        """End the process that runs now without notice; another follows."""
        with self._lock:
            self.deaths += 1
            self._process.kill()

    def end(self) -> None:
        """End it for good."""
        with self._lock:
            self._is_wanted = False
            self._process.terminate()
        try:
            self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._keeper.join()

    def _keep(self) -> None:
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
                ],
                cwd=_CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


@contextmanager
def restarted_controller(kubeconfig: Path, log: Path) -> Generator[RestartedController]:
    """A controller for the length of the block."""
    kept = RestartedController(kubeconfig, log)
    try:
        yield kept
    finally:
        kept.end()
