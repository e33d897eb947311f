"""A workspace whose one stack is written by a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from tests.support.aws_documents import REGION
from tests.support.cloud_platform import cloud_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.scheduling.json import Json
    from holdfast.simulator.paths import Workspace


def workspace_of(folder: Path, stack: str, document: Json) -> Workspace:
    """A workspace in `folder` with one stack on AWS: `document` stands under `holdfast:platform`."""
    workspace = cloud_workspace(folder)
    stacks = folder / "stacks"
    stacks.unlink()
    stacks.mkdir()
    content = {"config": {"aws:region": REGION, "holdfast:platform": document}}
    (stacks / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump(content))
    return workspace
