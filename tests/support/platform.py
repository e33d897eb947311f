"""The local platform in a temporary folder: this checkout's program, with all that it writes elsewhere."""

from pathlib import Path

import yaml

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.clusters.control_plane import CHECKOUT, scratch_workspace

PLATFORM = "holdfast:platform"


def platform_workspace(folder: Path) -> Workspace:
    """A workspace in `folder` with the checkout's project, policies, examples and local stack."""
    workspace = scratch_workspace(folder)
    (folder / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    for shared in ("examples", "infra", "policies"):
        (folder / shared).symlink_to(CHECKOUT / shared)
    (folder / "stacks").mkdir()
    tracked: JsonValue = yaml.safe_load((CHECKOUT / "stacks" / "Pulumi.local.yaml").read_text())
    (folder / "stacks" / "Pulumi.local.yaml").write_text(
        yaml.safe_dump(_elsewhere(mapping(tracked), workspace))
    )
    return workspace


def _elsewhere(settings: Json, workspace: Workspace) -> Json:
    """The settings of the local stack, with its paths in `workspace`: the program reads them from the checkout."""
    config = mapping(settings["config"])
    stack = workspace.stack_dir("local")
    platform: Json = {
        **mapping(config[PLATFORM]),
        "cluster": {"kubeconfig": str(workspace.kubeconfig("local"))},
        "checkpoints": {"directory": str(stack / "checkpoints")},
    }
    return {**settings, "config": {**config, PLATFORM: platform}}
