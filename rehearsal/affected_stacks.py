"""The stacks that a change affects, so that a pull request previews only those.

`git diff --name-only BASE...HEAD | python3 -m rehearsal.affected_stacks` prints two lines for a workflow's outputs:
`cloud=[…]`, the stacks that live in a cloud, and `all=[…]`, these and the local one. Standard library only:
it runs before anything is installed.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path, PurePosixPath

#: Words in a path that name one cloud; other paths belong to all clouds.
CLOUD_WORDS = {
    "aws": frozenset({"aws", "ec2", "efa", "eks", "s3"}),
    "azure": frozenset({"azure", "aks", "blob"}),
    "gcp": frozenset({"gcp", "gke", "gcs"}),
    "local": frozenset({"local", "kwok"}),
}

#: Folders that belong to one cloud although their names do not say so.
CLOUD_FOLDERS = {"components/charts/karpenter-crds/": "aws"}

#: Folders and files that determine the resources of a stack.
PROGRAM = (
    "infra/",
    "components/",
    "scheduling/",
    "policies/",
    "Pulumi.yaml",
    "pyproject.toml",
    "requirements.lock",
)


def cloud_of(stack: str) -> str:
    """The cloud in a stack's name: `aws-prod` → `aws`."""
    return stack.partition("-")[0]


def affected_by(path: str, stacks: frozenset[str]) -> frozenset[str]:
    """The stacks that a change of one file affects."""
    file = PurePosixPath(path)
    if file.parent == PurePosixPath("stacks"):
        return stacks & {file.stem.removeprefix("Pulumi.")}
    if not path.startswith(PROGRAM):
        return frozenset()
    clouds = _clouds_of(path)
    return frozenset(stack for stack in stacks if not clouds or cloud_of(stack) in clouds)


def _clouds_of(path: str) -> frozenset[str]:
    words = frozenset(re.split(r"[^a-z0-9]+", path.lower()))
    named = {cloud for cloud, names in CLOUD_WORDS.items() if names & words}
    return frozenset(named | {cloud for folder, cloud in CLOUD_FOLDERS.items() if path.startswith(folder)})


def affected(paths: list[str], stacks: frozenset[str]) -> list[str]:
    """The stacks that a change of these files affects, sorted."""
    return sorted({stack for path in paths for stack in affected_by(path, stacks)})


def main() -> None:
    """Read file names from standard input, print the two output lines."""
    stacks = frozenset(file.stem.removeprefix("Pulumi.") for file in Path("stacks").glob("Pulumi.*.yaml"))
    found = affected([line.strip() for line in sys.stdin if line.strip()], stacks)
    print(f"cloud={json.dumps([stack for stack in found if cloud_of(stack) != 'local'])}")
    print(f"all={json.dumps(found)}")


if __name__ == "__main__":
    main()
