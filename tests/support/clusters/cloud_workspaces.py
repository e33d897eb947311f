"""A workspace whose one stack is written by a test."""

from pathlib import Path

import yaml

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.builders.configurations import AWS_REGION
from tests.support.clusters.control_plane import CHECKOUT, scratch_workspace


def workspace_of(folder: Path, stack: str, document: Json) -> Workspace:
    """A workspace in `folder` with one stack on AWS: `document` stands under `holdfast:platform`."""
    workspace = cloud_workspace(folder)
    stacks = folder / "stacks"
    stacks.unlink()
    stacks.mkdir()
    content = {"config": {"aws:region": AWS_REGION, "holdfast:platform": document}}
    (stacks / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump(content))
    return workspace


def cloud_workspace(folder: Path, *, policies: Path | None = None) -> Workspace:
    """A workspace in `folder` with the checkout's project, examples and stacks, and its policies unless others are given."""
    workspace = scratch_workspace(folder)
    (folder / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    for shared in ("examples", "infra", "stacks"):
        (folder / shared).symlink_to(CHECKOUT / shared)
    (folder / "policies").symlink_to(policies or CHECKOUT / "policies")
    return workspace
