"""The fallback controller as a process that is started again whenever it dies."""

import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from holdfast.simulator.control_plane.processes import free_ports
from holdfast.simulator.operator_runner.adaptation import FALLBACK, LOOPBACK

_CHECKOUT: Final = Path(__file__).resolve().parents[3]
_GRACE_SECONDS: Final = 20


class KeptController:
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
def kept_controller(kubeconfig: Path, log: Path) -> Generator[KeptController]:
    """A controller for the length of the block."""
    kept = KeptController(kubeconfig, log)
    try:
        yield kept
    finally:
        kept.end()
