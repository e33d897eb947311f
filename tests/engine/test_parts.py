"""The examples of single parts run on the real engine, as their users rehearse them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import command
from tests.support.doc_pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(400)]

PARTS = ROOT / "examples/parts"
KARPENTER = ROOT / "components/charts/karpenter-crds/files"


def copied(name: str, folder: Path) -> Path:
    """The project of an example in a folder outside of this repository."""
    return shutil.copytree(PARTS / name, folder / name, ignore=shutil.ignore_patterns(".*", "__pycache__"))


@pytest.mark.parametrize(
    ("name", "options", "registered"),
    [
        pytest.param("rehearsal", (), 6, id="a program without Holdfast in it"),
        pytest.param("pools", ("--existing", str(KARPENTER)), 8, id="pools on an existing cluster"),
    ],
)
def test_an_example_is_rehearsed_from_preview_to_destroy(
    tmp_path: Path, name: str, options: tuple[str, ...], registered: int
) -> None:
    project = copied(name, tmp_path)
    ended = command(tmp_path, "rehearse", str(project), *options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    steps = ended.stdout.rpartition("Rehearsal of dev")[2]
    for said in (
        f"{registered} to create",
        f"{registered} created",
        "nothing changed",
        "no drift",
        f"{registered} deleted; nothing is left",
    ):
        assert said in steps, f"a step shows it: {steps}"
    assert sorted(each.name for each in project.iterdir()) == sorted(
        [
            ".rehearsal",
            *(each.name for each in (PARTS / name).iterdir() if each.name[0] not in "._"),
            "__main__.py",
        ]
    ), "the project itself is as it was"
