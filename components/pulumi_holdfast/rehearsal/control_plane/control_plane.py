"""Starts and stops the control plane of one stack: etcd, API server, controller manager, scheduler and kwok.

`ControlPlane` is the entry point. It writes the configuration, starts the processes through kwokctl (`Launcher`)
and waits until the API server is ready.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from pulumi_holdfast.rehearsal.control_plane.configuration import (
    COMPONENTS,
    PORT_OPTIONS,
    TOOLS,
    ControlPlaneFiles,
    Layout,
    answers_ready,
)
from pulumi_holdfast.rehearsal.control_plane.processes import (
    end_processes,
    exclusive_lock,
    free_ports,
    processes_in,
)
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.locate import find_tool

# On two cores that also ran a build, an API server took 40 s to start.
START_SECONDS = 180
LOG_LINES_SHOWN = 6
PORT_CHOICES = 3
ETCD_GRACE_SECONDS = 10
# The API server takes 5 s to end its watches, and longer without etcd. A shorter grace period loses nothing.
STATELESS_GRACE_SECONDS = 1


class PortTakenError(Exception):
    """Another program took a chosen port before the control plane could listen on it."""


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """Runs kwokctl for the control plane whose files are at `layout`."""

    kwokctl: Path
    layout: Layout

    def create(self) -> None:
        """Create the cluster from its configuration and start it.

        Raises PortTakenError, and RehearsalError when a process exits or does not start in time.
        """
        configuration = str(self.layout.configuration)
        # No node leases: after a crash, kwok would respect the leases of the dead kwok for 200 s and manage no
        # node or pod during that time. Heartbeats are in the nodes' status instead.
        self._run(
            "create", "--config", configuration, "--kubeconfig", "", "--node-lease-duration-seconds", "0"
        )

    def start_missing(self) -> None:
        """Start every process that does not run: the controller manager exits after 10 s without an API server."""
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
            raise RehearsalError(f"kwokctl {verb} failed for the control plane: {_tail(log)}")

    def _watch(self, kwokctl: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_SECONDS
        while kwokctl.poll() is None:
            self.raise_if_exited("etcd", "kube-apiserver")
            if time.monotonic() > deadline:
                raise RehearsalError(
                    f"the control plane did not start within {START_SECONDS} s. "
                    f"Read the logs in {self.layout.logs_dir}."
                )
            time.sleep(0.2)

    def raise_if_exited(self, *components: str) -> None:
        """Raise PortTakenError or RehearsalError if one of `components` was started and has exited."""
        for component in components:
            pid = self.layout.pids_dir / f"{component}.pid"
            if pid.exists() and not _runs(pid):
                raise self.failure_of(component)

    def failure_of(self, component: str) -> Exception:
        """The error that explains, from its log, why `component` does not run."""
        log = _tail(self.layout.logs_dir / f"{component}.log")
        if "address already in use" in log:
            return PortTakenError(component)
        return RehearsalError(
            f"{component} exited right after its start; its log ends with:\n{log}\n"
            f"Read its log in {self.layout.logs_dir}. If the data under {self.layout.etcd_dir} is damaged, "
            f"remove {self.layout.home} and start again: the stack is then created from the beginning."
        )


def _environment(base: Mapping[str, str], home: Path) -> dict[str, str]:
    # KWOK_* variables take precedence over kwokctl's configuration file: drop those of the user.
    inherited = {key: value for key, value in base.items() if not key.startswith("KWOK_")}
    return {**inherited, "KWOK_WORKDIR": str(home), "NO_PROXY": "127.0.0.1,localhost"}


def _runs(pid_file: Path) -> bool:
    try:
        pid = pid_file.read_text()
        # kwokctl creates the file before it writes into it.
        return not pid or psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, ValueError, OSError):
        return False


def _tail(log: Path) -> str:
    if not log.exists():
        return "nothing"
    lines = log.read_text(errors="replace").strip().splitlines()
    return "\n".join(lines[-LOG_LINES_SHOWN:]) or "nothing"


class ControlPlane:
    """The control plane of one stack.

    Starts five processes that listen on free loopback ports and keep their files under the stack's folder.
    `report` receives one line for each step; `arguments` are additional flags of the API server with their values.
    """

    def __init__(
        self,
        name: str,
        workspace: Workspace,
        *,
        report: Callable[[str], None] = print,
        arguments: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._layout = Layout.of(name, workspace)
        self._files = ControlPlaneFiles(self._layout, arguments)
        self._workspace = workspace
        self._report = report

    @property
    def layout(self) -> Layout:
        """The paths of its files."""
        return self._layout

    def start(self) -> Path:
        """Start the control plane and return the path of its kubeconfig. A healthy one is not touched.

        A control plane with a dead process, or one started with other tools or stages than the current ones, is
        restarted on the same data. Raises RehearsalError if a tool is missing, if another run starts or stops it,
        or if a process exits.
        """
        with exclusive_lock(self._layout.lock, doing="start the control plane"):
            programs = {name: find_tool(name, self._workspace) for name in TOOLS}
            if self._files.are_current(programs) and self.healthy():
                return self._layout.kubeconfig
            self._stop_remaining()
            launcher = Launcher(kwokctl=find_tool("kwokctl", self._workspace), layout=self._layout)
            self._start_on_free_ports(launcher, programs)
            return self._layout.kubeconfig

    def healthy(self) -> bool:
        """Whether every process runs and the API server reports that it is ready."""
        server = self._files.server()
        return (
            server is not None
            and self._layout.kubeconfig.is_file()
            and not self._missing()
            and answers_ready(server=server, pki_dir=self._layout.pki_dir)
        )

    def stop(self, *, at_once: bool = False) -> None:
        """Stop every process and keep the data. Does nothing when no process runs.

        `at_once` kills the processes; etcd then replays its log at the next start.
        """
        with exclusive_lock(self._layout.lock, doing="stop the control plane"):
            self._end_all(at_once=at_once)

    def delete(self) -> None:
        """Kill every process and remove the data and the kubeconfig. Does nothing when there are none."""
        with exclusive_lock(self._layout.lock, doing="remove the control plane"):
            # The data is removed: no process has anything to write before it exits.
            self._end_all(at_once=True)
            shutil.rmtree(self._layout.home, ignore_errors=True)
            self._layout.kubeconfig.unlink(missing_ok=True)
            self._layout.egress_socket.unlink(missing_ok=True)

    def _start_on_free_ports(self, launcher: Launcher, programs: Mapping[str, Path]) -> None:
        for _ in range(PORT_CHOICES):
            ports = dict(zip(PORT_OPTIONS, free_ports(len(PORT_OPTIONS)), strict=True))
            self._files.write(programs, ports)
            try:
                launcher.create()
                self._files.write_kubeconfig()
                self._wait_until_healthy(launcher)
            except PortTakenError as taken:
                self._report(f"another program took the port of {taken}: choosing other ports")
                self._end_all()
            except BaseException:
                self._end_all()
                raise
            else:
                return
        raise RehearsalError(
            f"another program took a port of the control plane {PORT_CHOICES} times before it could listen; "
            "find the program that opens so many ports with `ss -ltnp`, then try again"
        )

    def _wait_until_healthy(self, launcher: Launcher) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.healthy():
            launcher.raise_if_exited("etcd", "kube-apiserver")
            missing = self._missing()
            if time.monotonic() > deadline:
                raise launcher.failure_of(missing[0] if missing else "kube-apiserver")
            if missing:
                launcher.start_missing()
            time.sleep(0.2)

    def _missing(self) -> list[str]:
        running = {each.name for each in processes_in(self._layout.cluster_dir, COMPONENTS)}
        return [name for name in COMPONENTS if name not in running]

    def _stop_remaining(self) -> None:
        missing = self._missing()
        if len(missing) < len(COMPONENTS):
            reason = f"{', '.join(missing)} had exited" if missing else "its tools or settings have changed"
            self._report(f"restarting the control plane on its data: {reason}")
        self._end_all()

    def _end_all(self, *, at_once: bool = False) -> None:
        running = processes_in(self._layout.cluster_dir, COMPONENTS)
        if at_once:
            end_processes(running, grace_seconds=0)
            return
        # etcd last: processes that still write to it would wait for it until their grace period ends.
        stateless = [each for each in running if each.name != "etcd"]
        end_processes(stateless, grace_seconds=STATELESS_GRACE_SECONDS)
        end_processes([each for each in running if each.name == "etcd"], grace_seconds=ETCD_GRACE_SECONDS)
