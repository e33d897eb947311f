"""Runs kwokctl, and tells why a control plane did not come up."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from holdfast.simulator.control_plane.configuration import (
    COMPONENTS,
    TOOLS,
    ControlPlaneFiles,
    Layout,
    Ports,
    answers_ready,
)
from holdfast.simulator.control_plane.processes import end_processes, exclusive_lock, free_ports, processes_in
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.locate import find_tool

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


PORT_CHOICES = 3
ETCD_GRACE_SECONDS = 10
# The API server takes 5 s to end its watches, and longer where etcd is gone; nothing is lost by not waiting.
STATELESS_GRACE_SECONDS = 1


class ControlPlane:
    """The control plane of one stack.

    Starts five processes that listen on free loopback ports and keep their files under the stack's folder.
    `report` is told, a line at a time, what is being done; `admission_plugins` are on beside the API server's own.
    """

    def __init__(
        self,
        name: str,
        workspace: Workspace,
        *,
        report: Callable[[str], None] = print,
        admission_plugins: tuple[str, ...] = (),
    ) -> None:
        self._layout = Layout.of(name, workspace)
        self._files = ControlPlaneFiles(self._layout, admission_plugins)
        self._workspace = workspace
        self._report = report

    @property
    def layout(self) -> Layout:
        """Where its files are."""
        return self._layout

    def start(self) -> Path:
        """Bring the control plane up and return its kubeconfig. One that is up is left as it is.

        One of which a part has died, or which was started by other tools or with other stages than today's,
        is started again on the same data. Raises RehearsalError where a tool is missing, another run is at
        it, or a process does not stay up.
        """
        with exclusive_lock(self._layout.lock, doing="start the control plane"):
            programs = {name: find_tool(name, self._workspace) for name in TOOLS}
            if self._files.are_of(programs) and self.healthy():
                return self._layout.kubeconfig
            self._end_survivors()
            launcher = Launcher(kwokctl=find_tool("kwokctl", self._workspace), layout=self._layout)
            self._start_on_free_ports(launcher, programs)
            return self._layout.kubeconfig

    def healthy(self) -> bool:
        """Whether every process runs and the API server says that it is ready."""
        server = self._files.server()
        return (
            server is not None
            and self._layout.kubeconfig.is_file()
            and not self._missing()
            and answers_ready(server=server, pki_dir=self._layout.pki_dir)
        )

    def stop(self) -> None:
        """End every process of the control plane; its data stays. Harmless when none runs."""
        with exclusive_lock(self._layout.lock, doing="stop the control plane"):
            self._end_all()

    def delete(self) -> None:
        """Stop, and remove the control plane's data and kubeconfig. Harmless when there is none."""
        with exclusive_lock(self._layout.lock, doing="remove the control plane"):
            self._end_all()
            shutil.rmtree(self._layout.home, ignore_errors=True)
            self._layout.kubeconfig.unlink(missing_ok=True)
            self._layout.egress_socket.unlink(missing_ok=True)

    def _start_on_free_ports(self, launcher: Launcher, programs: Mapping[str, Path]) -> None:
        for _ in range(PORT_CHOICES):
            self._files.write(programs, Ports.of(free_ports(Ports.count())))
            try:
                launcher.create()
                self._files.write_kubeconfig()
                self._wait_until_healthy(launcher)
            except PortTakenError as taken:
                self._report(f"another program took the port chosen for {taken}: choosing others")
                self._end_all()
            except BaseException:
                self._end_all()
                raise
            else:
                return
        raise RehearsalError(
            f"{PORT_CHOICES} times another program took a port between its choice and the start of the control "
            "plane; see with `ss -ltnp` what opens so many ports on this machine, then try again"
        )

    def _wait_until_healthy(self, launcher: Launcher) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.healthy():
            launcher.refuse_if_ended("etcd", "kube-apiserver")
            missing = self._missing()
            if time.monotonic() > deadline:
                raise launcher.failure_of(missing[0] if missing else "kube-apiserver")
            if missing:
                launcher.start_missing()
            time.sleep(0.2)

    def _missing(self) -> list[str]:
        running = {each.name for each in processes_in(self._layout.cluster_dir, COMPONENTS)}
        return [name for name in COMPONENTS if name not in running]

    def _end_survivors(self) -> None:
        missing = self._missing()
        if len(missing) < len(COMPONENTS):
            reason = f"{', '.join(missing)} had ended" if missing else "its tools or settings have changed"
            self._report(f"the control plane is started again on its data: {reason}")
        self._end_all()

    def _end_all(self) -> None:
        running = processes_in(self._layout.cluster_dir, COMPONENTS)
        # etcd last: what still writes to it would otherwise wait for it until its grace is over.
        stateless = [each for each in running if each.name != "etcd"]
        end_processes(stateless, grace_seconds=STATELESS_GRACE_SECONDS)
        end_processes([each for each in running if each.name == "etcd"], grace_seconds=ETCD_GRACE_SECONDS)
