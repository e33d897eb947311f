"""Processes of the controller, as they run in a cluster."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast
from urllib.error import URLError

from tests.support.control_plane import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from holdfast.scheduling.json import Json


class Replica:
    """A process of the controller; its log lines are JSON objects."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])
        self._log = folder / f"controller-{self._port}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "holdfast.fallback", "--kubeconfig", str(kubeconfig)),
                    *("--address", "127.0.0.1", "--port", str(self._port), "--log-level", "debug"),
                ],
                cwd=CHECKOUT,
                stdout=log,
                stderr=log,
            )

    def log(self) -> list[Json]:
        """Every line it has logged."""
        lines = self._log.read_text().splitlines()
        return [cast("Json", json.loads(line)) for line in lines if line.startswith("{")]

    def says(self, words: str) -> bool:
        """Whether a log line has these words in its message."""
        return any(words in str(line["message"]) for line in self.log())

    def answers(self, path: str) -> str | None:
        """What it serves, None where it refuses or does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as answer:
                return cast("bytes", answer.read()).decode()
        except (URLError, OSError):
            return None

    def number(self, series: str) -> float:
        """What a metric says, 0 where it has not been counted yet. `series` with its labels."""
        lines = (self.answers("/metrics") or "").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == series)

    def leads(self) -> bool:
        """Whether it leads."""
        return self.number("holdfast_fallback_leads") == 1

    def wait(self, condition: Callable[[Replica], bool], what: str, *, seconds: float = 120) -> None:
        """Wait until something holds of it."""
        wait_until(lambda: condition(self), f"{what}\n{self._log.read_text()[-4000:]}", seconds=seconds)

    def wait_ready(self) -> Replica:
        """Wait until it has seen the cluster."""
        self.wait(lambda each: each.answers("/readyz") == "ok", "the controller is ready")
        return self

    def kill(self) -> None:
        """End it without notice."""
        self.process.kill()
        self.process.wait(30)

    def terminate(self) -> int:
        """Tell it to end, and return its exit code."""
        self.process.terminate()
        return self.process.wait(30)

    def freeze(self) -> None:
        """Stop it in its tracks."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.process.pid, signal.SIGCONT)

    def memory_mib(self) -> float:
        """What it holds in memory."""
        return self.number("process_resident_memory_bytes") / 2**20


@contextmanager
def replica(kubeconfig: Path, folder: Path) -> Generator[Replica]:
    """A replica for the length of the block."""
    started = Replica(kubeconfig, folder)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.thaw()
            started.kill()


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 120) -> None:
    """Look until something holds."""
    for _ in _looks(seconds):
        if condition():
            return
    raise AssertionError(f"not so after {seconds:.0f} s: {what}")


def _looks(seconds: float) -> Iterator[None]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield
        time.sleep(0.05)
