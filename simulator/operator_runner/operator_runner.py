"""Where the operator host of one stack keeps its files."""

from dataclasses import dataclass
from pathlib import Path

from holdfast.simulator.control_plane.configuration import Layout
from holdfast.simulator.paths import Workspace


@dataclass(frozen=True, kw_only=True)
class HostLayout:
    """The files of an operator host. Creates nothing."""

    stack: str
    folder: Path
    logs: Path
    kubeconfig: Path
    egress_socket: Path

    @classmethod
    def of(cls, stack: str, workspace: Workspace) -> "HostLayout":
        """The files of `stack`'s operator host in `workspace`."""
        control_plane = Layout.of(stack, workspace)
        return cls(
            stack=stack,
            folder=control_plane.stack_dir / "hosting",
            logs=workspace.logs_dir(stack).resolve(),
            kubeconfig=control_plane.kubeconfig,
            egress_socket=control_plane.egress_socket,
        )

    @property
    def record(self) -> Path:
        """By whom the stack's operators are hosted."""
        return self.folder / "host.json"

    @property
    def lock(self) -> Path:
        """Held by the one run that starts or stops the host."""
        return self.folder.with_suffix(".lock")

    @property
    def pods(self) -> Path:
        """One folder per hosted pod."""
        return self.folder / "pods"

    @property
    def log(self) -> Path:
        """The host's own log."""
        return self.logs / "operator-host.log"
