"""Runs kwokctl, and tells why a control plane did not come up."""

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from holdfast.simulator.control_plane.configuration import COMPONENTS
from holdfast.simulator.control_plane.layout import Layout
from holdfast.simulator.errors import RehearsalError

# An API server that has to compete for two cores with a build was seen to take 40 s.
START_SECONDS = 180
LOG_LINES_SHOWN = 6


class PortTakenError(Exception):
    """Somebody took one of the ports between the choice and the start."""


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """kwokctl, bound to one control plane's files."""

    kwokctl: Path
    layout: Layout

    def create(self) -> None:
        """Create the cluster from its configuration and start it.

        Raises PortTakenError, or RehearsalError where a process of it ends or does not come up in time.
        """
        configuration = str(self.layout.configuration)
        # Without node leases: after a crash kwok would respect those of the kwok that died, for 200 s, and
        # leave every node and pod alone so long. Heartbeats are in the nodes' status instead.
        self._run(
            "create", "--config", configuration, "--kubeconfig", "", "--node-lease-duration-seconds", "0"
        )

    def start_missing(self) -> None:
        """Start what does not run: the controller manager gives up after 10 s without an API server."""
        self._run("start")

    def _run(self, verb: str, *arguments: str) -> None:
        command = [str(self.kwokctl), verb, "cluster", "--name", self.layout.stack, "-v", "WARN", *arguments]
        log = self.layout.home / "kwokctl.log"
        with log.open("ab") as output:
            kwokctl = subprocess.Popen(
                command,
                env=_environment(os.environ, self.layout.home),
                cwd=self.layout.home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                self._watch(kwokctl)
            finally:
                kwokctl.kill()
                kwokctl.wait()
        if kwokctl.returncode != 0:
            raise RehearsalError(f"kwokctl could not {verb} the control plane: {_tail(log)}")

    def _watch(self, kwokctl: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_SECONDS
        while kwokctl.poll() is None:
            self.refuse_if_ended("etcd", "kube-apiserver")
            if time.monotonic() > deadline:
                raise RehearsalError(
                    f"the control plane did not come up within {START_SECONDS} s; "
                    f"its logs are in {self.layout.logs_dir}"
                )
            time.sleep(0.2)

    def refuse_if_ended(self, *components: str) -> None:
        """Raise PortTakenError or RehearsalError where one of `components` was started and has ended."""
        for component in components:
            pid = self.layout.pids_dir / f"{component}.pid"
            if pid.exists() and not _runs(pid):
                raise self.failure_of(component)

    def failure_of(self, component: str) -> Exception:
        """Why `component` does not run, by its log."""
        said = _tail(self.layout.logs_dir / f"{component}.log")
        if "address already in use" in said:
            return PortTakenError(component)
        return RehearsalError(
            f"{component} ended as soon as it was started; it said:\n{said}\n"
            f"Its log is in {self.layout.logs_dir}. If the data under {self.layout.etcd_dir} is damaged, "
            f"remove {self.layout.home} and start again: the stack is then built anew."
        )


def forget_processes(layout: Layout) -> None:
    """Remove what kwokctl believes to run. After a reboot the numbers belong to others, whom it would kill."""
    for component in COMPONENTS:
        (layout.pids_dir / f"{component}.pid").unlink(missing_ok=True)
        (layout.logs_dir / f"{component}.log").unlink(missing_ok=True)
    layout.saved_configuration.unlink(missing_ok=True)
    # kwokctl links the programs here once and keeps the links: another version would not be taken up.
    shutil.rmtree(layout.cluster_dir / "bin", ignore_errors=True)


def _environment(base: Mapping[str, str], home: Path) -> dict[str, str]:
    # kwokctl lets KWOK_* variables win over its configuration file: the user's own must not reach it.
    kept = {key: value for key, value in base.items() if not key.startswith("KWOK_")}
    return {**kept, "KWOK_WORKDIR": str(home), "NO_PROXY": "127.0.0.1,localhost"}


def _runs(pid_file: Path) -> bool:
    try:
        return psutil.Process(int(pid_file.read_text())).status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, ValueError, OSError):
        return False


def _tail(log: Path) -> str:
    if not log.exists():
        return "nothing"
    lines = log.read_text(errors="replace").strip().splitlines()
    return "\n".join(lines[-LOG_LINES_SHOWN:]) or "nothing"
