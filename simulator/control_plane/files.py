"""Writes, and reads again, the files a control plane is started from."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.simulator.control_plane.configuration import (
    Ports,
    ports_of,
    render_configuration,
    render_egress,
)
from holdfast.simulator.control_plane.kubeconfig import Cluster, administrator, render_kubeconfig
from holdfast.simulator.control_plane.launcher import forget_processes
from holdfast.simulator.control_plane.layout import Layout
from holdfast.simulator.errors import RehearsalError


@dataclass(frozen=True)
class ControlPlaneFiles:
    """The files of one control plane."""

    layout: Layout
    admission_plugins: tuple[str, ...] = ()

    def write(self, programs: Mapping[str, Path], ports: Ports) -> None:
        """Write what kwokctl and the API server read, and remove what an earlier start left."""
        self.layout.etcd_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        forget_processes(self.layout)
        self.layout.configuration.write_text(self._rendered(programs, ports))
        self.layout.egress_configuration.write_text(render_egress(self.layout.egress_socket))

    def are_of(self, programs: Mapping[str, Path]) -> bool:
        """Whether the files are those that would be written today for `programs`."""
        saved = self._saved()
        ports = ports_of(saved)
        return ports is not None and saved == self._rendered(programs, ports)

    def server(self) -> str | None:
        """The API server's address; None before the first start."""
        ports = ports_of(self._saved())
        return f"https://127.0.0.1:{ports.api_server}" if ports else None

    def write_kubeconfig(self) -> None:
        """Write the administrator's kubeconfig, readable by its owner alone from its first byte on."""
        server = self.server()
        if server is None:
            raise RehearsalError(
                f"{self.layout.configuration} vanished while the control plane started: start again"
            )
        pki = self.layout.pki_dir
        cluster = Cluster(server=server, authority=(pki / "ca.crt").read_bytes())
        user = administrator((pki / "admin.crt").read_bytes(), (pki / "admin.key").read_bytes())
        text = render_kubeconfig(f"holdfast-{self.layout.stack}", cluster, user)
        draft = self.layout.kubeconfig.with_suffix(".new")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        draft.replace(self.layout.kubeconfig)

    def _rendered(self, programs: Mapping[str, Path], ports: Ports) -> str:
        return render_configuration(
            programs=programs,
            ports=ports,
            etcd_dir=self.layout.etcd_dir,
            egress_configuration=self.layout.egress_configuration,
            admission_plugins=self.admission_plugins,
        )

    def _saved(self) -> str:
        configuration = self.layout.configuration
        return configuration.read_text() if configuration.is_file() else ""
