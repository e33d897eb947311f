"""A control plane of a test's own, in a temporary folder, made of the checkout's tools."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from holdfast.simulator.control_plane import ControlPlane
from holdfast.simulator.paths import Workspace

CHECKOUT = Path(__file__).resolve().parents[2]


def scratch_workspace(folder: Path) -> Workspace:
    """A workspace in `folder` which writes there, and takes the tools and charts of the checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Pulumi.yaml").touch()
    for shared in (".tools", "tools"):
        if not (folder / shared).is_symlink():
            (folder / shared).symlink_to(CHECKOUT / shared)
    return Workspace(project_root=folder)


@contextmanager
def running_control_plane(
    folder: Path, stack: str = "local", *, admission_plugins: tuple[str, ...] = ()
) -> Generator[Workspace]:
    """A control plane for the length of the block; its kubeconfig is `workspace.kubeconfig(stack)`."""
    workspace = scratch_workspace(folder)
    control_plane = ControlPlane(stack, workspace, report=lambda _: None, admission_plugins=admission_plugins)
    try:
        control_plane.start()
        yield workspace
    finally:
        control_plane.delete()
