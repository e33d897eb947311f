"""The stacks that a change affects, so that a pull request previews only those.

`git diff --name-only BASE...HEAD | python3 components/pulumi_holdfast/rehearsal/affected_stacks.py` prints two lines for a workflow's outputs:
`stacks=[…]`, name and cloud of each stack that lives in a cloud, and `cloud=[…]`, their names. With `--all` it prints all stacks,
with `--environment dev` those whose names end in `-dev`. A stack's cloud is the one that its file declares. Standard library only:
it runs before anything is installed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

#: Words in a path that name one cloud; other paths belong to all clouds.
CLOUD_WORDS = {
    "aws": frozenset({"aws", "ec2", "efa", "eks", "s3"}),
    "azure": frozenset({"azure", "aks", "blob"}),
    "gcp": frozenset({"gcp", "gke", "gcs"}),
    "local": frozenset({"local", "kwok"}),
}

#: Folders that belong to one cloud although their names do not say so.
CLOUD_FOLDERS = {"components/pulumi_holdfast/kubernetes/charts/karpenter-crds/": "aws"}

#: Folders and files that determine the resources of a stack; `controller` travels with it as the controller's program.
_PACKAGE = "components/pulumi_holdfast/"
PROGRAM = (
    *(
        f"{_PACKAGE}{part}/"
        for part in (
            "aws",
            "azure",
            "gcp",
            "local",
            "kubernetes",
            "config",
            "ladder",
            "controller",
            "program",
        )
    ),
    f"{_PACKAGE}clouds.py",
    f"{_PACKAGE}stack_program.py",
    "infra/",
    "policies/",
    "Pulumi.yaml",
    "pyproject.toml",
    "requirements.lock",
)


#: The field `cloud` of a stack file, which nothing but comments and `config:` may stand above without indentation.
_CLOUD = re.compile(
    r"""^[ ]+["']?cloud["']?:[ ]+["']?(?P<cloud>[a-z]+)|[{,][ ]*cloud:[ ]*(?P<inline>[a-z]+)""", re.MULTILINE
)


def cloud_in(text: str) -> str | None:
    """The cloud that a stack file declares; None if it declares none, and then it depends on every file."""
    found = _CLOUD.search(text)
    return (found["cloud"] or found["inline"]) if found else None


def affected_by(path: str, stacks: Mapping[str, str | None]) -> frozenset[str]:
    """The stacks, given with their clouds, that a change of one file affects."""
    file = PurePosixPath(path)
    if file.parent == PurePosixPath("stacks"):
        return frozenset(stacks) & {file.stem.removeprefix("Pulumi.")}
    if not path.startswith(PROGRAM):
        return frozenset()
    clouds = _clouds_of(path)
    return frozenset(
        stack for stack, cloud in stacks.items() if not clouds or cloud is None or cloud in clouds
    )


def _clouds_of(path: str) -> frozenset[str]:
    words = frozenset(re.split(r"[^a-z0-9]+", path.lower()))
    named = {cloud for cloud, names in CLOUD_WORDS.items() if names & words}
    return frozenset(named | {cloud for folder, cloud in CLOUD_FOLDERS.items() if path.startswith(folder)})


def affected(paths: list[str], stacks: Mapping[str, str | None]) -> list[str]:
    """The stacks that a change of these files affects, sorted."""
    return sorted({stack for path in paths for stack in affected_by(path, stacks)})


def stacks_in(folder: Path) -> dict[str, str | None]:
    """The stacks that have a file in a folder, with the clouds that these declare."""
    return {
        file.stem.removeprefix("Pulumi."): cloud_in(file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("Pulumi.*.yaml"))
    }


def main() -> None:
    """Read file names from standard input, print the output lines."""
    stacks = stacks_in(Path("stacks"))
    changed = [line.strip() for line in sys.stdin if line.strip()] if "--all" not in sys.argv else []
    found = sorted(stacks) if "--all" in sys.argv else affected(changed, stacks)
    if "--environment" in sys.argv:
        end = f"-{sys.argv[sys.argv.index('--environment') + 1]}"
        found = [stack for stack in found if stack.endswith(end)]
    in_cloud = [stack for stack in found if stacks[stack] != "local"]
    print(f"stacks={json.dumps([{'stack': stack, 'cloud': stacks[stack]} for stack in in_cloud])}")
    print(f"cloud={json.dumps(in_cloud)}")


if __name__ == "__main__":
    main()
