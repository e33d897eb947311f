"""A stack of a cloud in a temporary folder: this checkout's program, with all that it writes elsewhere."""

from pathlib import Path

from holdfast.simulator.paths import Workspace
from tests.support.control_plane import CHECKOUT, scratch_workspace


def cloud_workspace(folder: Path, *, policies: Path | None = None) -> Workspace:
    """A workspace in `folder` with the checkout's project, examples and stacks, and its policies unless others are given."""
    workspace = scratch_workspace(folder)
    (folder / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    for shared in ("examples", "infra", "stacks"):
        (folder / shared).symlink_to(CHECKOUT / shared)
    (folder / "policies").symlink_to(policies or CHECKOUT / "policies")
    return workspace
