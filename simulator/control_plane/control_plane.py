"""A real control plane on this machine: etcd, API server, controller manager, scheduler, simulated nodes."""

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.simulator.control_plane.configuration import COMPONENTS, TOOLS, Ports
from holdfast.simulator.control_plane.files import ControlPlaneFiles
from holdfast.simulator.control_plane.kubeconfig import answers_ready
from holdfast.simulator.control_plane.launcher import START_SECONDS, Launcher, PortTakenError
from holdfast.simulator.control_plane.layout import Layout
from holdfast.simulator.control_plane.lock import held
from holdfast.simulator.control_plane.ports import free_ports
from holdfast.simulator.control_plane.processes import end, processes_in
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.locate import find_tool

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
        with held(self._layout.lock, doing="start the control plane"):
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
        with held(self._layout.lock, doing="stop the control plane"):
            self._end_all()

    def delete(self) -> None:
        """Stop, and remove the control plane's data and kubeconfig. Harmless when there is none."""
        with held(self._layout.lock, doing="remove the control plane"):
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
        end(stateless, grace_seconds=STATELESS_GRACE_SECONDS)
        end([each for each in running if each.name == "etcd"], grace_seconds=ETCD_GRACE_SECONDS)
