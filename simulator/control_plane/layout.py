"""Where one control plane keeps its files."""

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from holdfast.simulator.paths import Workspace

# Linux refuses to bind a unix socket whose path, with its closing zero, is longer than 108 bytes.
LONGEST_SOCKET_PATH = 107


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The files of the control plane of one stack.

    Creates nothing.
    """

    stack: str
    stack_dir: Path
    kubeconfig: Path

    @classmethod
    def of(cls, stack: str, workspace: Workspace) -> "Layout":
        """The files of `stack`'s control plane in `workspace`."""
        return cls(
            stack=stack,
            stack_dir=workspace.stack_dir(stack).resolve(),
            kubeconfig=workspace.kubeconfig(stack).resolve(),
        )

    @property
    def home(self) -> Path:
        """Everything the control plane writes, except the kubeconfig."""
        return self.stack_dir / "control-plane"

    @property
    def cluster_dir(self) -> Path:
        """The working directory of every process of the control plane: what they are known by."""
        return self.home / "clusters" / self.stack

    @property
    def saved_configuration(self) -> Path:
        """What kwokctl remembers of the cluster: ports, programs, arguments."""
        return self.cluster_dir / "kwok.yaml"

    @property
    def pids_dir(self) -> Path:
        """One file per process, written by kwokctl."""
        return self.cluster_dir / "pids"

    @property
    def logs_dir(self) -> Path:
        """One log per process, written by kwokctl."""
        return self.cluster_dir / "logs"

    @property
    def pki_dir(self) -> Path:
        """Certificates and keys; the service accounts' tokens are signed with the one in it."""
        return self.cluster_dir / "pki"

    @property
    def etcd_dir(self) -> Path:
        """The cluster's data. Outside `cluster_dir`, which kwokctl removes when a creation fails."""
        return self.home / "etcd"

    @property
    def configuration(self) -> Path:
        """What kwokctl is told to create."""
        return self.home / "configuration.yaml"

    @property
    def egress_configuration(self) -> Path:
        """How the API server reaches Services."""
        return self.home / "egress.yaml"

    @property
    def lock(self) -> Path:
        """Held by the one run that starts or stops this control plane."""
        return self.stack_dir / "control-plane.lock"

    @property
    def egress_socket(self) -> Path:
        """The socket the API server sends its calls to Services through.

        Beside the other files where its path is short enough for a socket, else in a folder of its own
        for temporary files, which whoever listens must make with mode 0700.
        """
        wanted = self.stack_dir / "egress.sock"
        if len(str(wanted).encode()) <= LONGEST_SOCKET_PATH:
            return wanted
        digest = hashlib.sha256(str(wanted).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"holdfast-{digest}" / "egress.sock"
