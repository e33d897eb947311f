"""Which stacks a change touches, so that a pull request previews those and no others.

`git diff --name-only BASE...HEAD | python3 -m rehearsal.touched` prints two lines for a workflow's outputs:
`cloud=[…]`, the stacks that live in a cloud, and `all=[…]`, these and the local one. Standard library only:
it runs before anything is installed.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path, PurePosixPath

#: What the name of a file, or of a folder it is in, says about the one cloud it is for; others are for all of them.
CLOUD_WORDS = {
    "aws": frozenset({"aws", "ec2", "efa", "eks", "s3"}),
    "azure": frozenset({"azure", "aks", "blob"}),
    "gcp": frozenset({"gcp", "gke", "gcs"}),
    "local": frozenset({"local", "kwok"}),
}

#: Folders whose names do not say which one cloud they are for: elsewhere Karpenter is simulated, or the cloud's own.
CLOUD_FOLDERS = {"components/charts/karpenter-crds/": "aws"}

#: Folders and files that decide what a stack becomes; docs, tests and tools do not.
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
    """The stacks which a change of one file touches."""
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
    """The stacks which a change of these files touches, sorted."""
    return sorted({stack for path in paths for stack in affected_by(path, stacks)})


def main() -> None:
    """Read file names from standard input, print the two output lines."""
    stacks = frozenset(file.stem.removeprefix("Pulumi.") for file in Path("stacks").glob("Pulumi.*.yaml"))
    found = affected([line.strip() for line in sys.stdin if line.strip()], stacks)
    print(f"cloud={json.dumps([stack for stack in found if cloud_of(stack) != 'local'])}")
    print(f"all={json.dumps(found)}")


if __name__ == "__main__":
    main()
