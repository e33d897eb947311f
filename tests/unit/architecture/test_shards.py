"""CI's shards of slow tests (`.ci/shards`) hold every folder once, and a change runs the shards that it needs."""

import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import cast

import pytest
import yaml

from tests.support.scheduling import SECONDS

ROOT = Path(__file__).resolve().parents[3]


def chosen(*arguments: str, changed: str = "") -> dict[str, str]:
    """The folders of each shard that the script prints."""
    command = [sys.executable, str(ROOT / ".ci" / "shards"), *arguments]
    printed = subprocess.run(command, input=changed, capture_output=True, text=True, check=True).stdout
    shards = cast("list[dict[str, str]]", yaml.safe_load(printed.removeprefix("shards=")))
    return {shard["name"]: shard["folders"] for shard in shards}


def test_every_folder_of_cluster_tests_is_in_one_shard() -> None:
    folders = sorted(chain.from_iterable(shard.split() for shard in chosen("--all").values()))
    tested = {path.relative_to(ROOT).parts[:3] for path in (ROOT / "tests" / "cluster").rglob("test_*.py")}
    assert [folder for folder in folders if folder.startswith("tests/cluster")] == sorted(
        map("/".join, tested)
    )
    assert all((ROOT / folder).exists() for folder in folders)


@pytest.mark.parametrize(
    ("path", "shards"),
    [
        ("docs/operations.md", set[str]()),
        ("tests/unit/controller/jobs/test_jobset.py", set[str]()),
        ("tests/cluster/gke/test_preemption.py", {"clouds"}),
        ("components/pulumi_holdfast/controller/jobs/jobset.py", {"fallback", "platform"}),
        ("components/pulumi_holdfast/rehearsal/control_plane/control_plane.py", set(chosen("--all"))),
    ],
)
def test_a_change_needs_the_shards_that_run_its_code(path: str, shards: set[str]) -> None:
    assert set(chosen(changed=f"{path}\n")) == shards


def test_every_scope_with_a_known_time_exists() -> None:
    assert [scope for scope in SECONDS if not (ROOT / scope).exists()] == []
