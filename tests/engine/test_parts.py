"""The examples of single parts run on the real engine, as their users rehearse them."""

import shutil
import subprocess
from collections.abc import Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.support.command_line import command
from tests.support.doc_pages import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(400)]

PARTS: Final = ROOT / "examples/parts"
KARPENTER: Final = ROOT / "components/pulumi_holdfast/kubernetes/charts/karpenter-crds/files"
#: Example → the options with which it is rehearsed: the second one's cluster has Karpenter.
OPTIONS: Final = {"rehearsal": (), "pools": ("--existing", str(KARPENTER))}

#: The lines of a terminal.
_SCREEN: Final = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside of this repository, with a copy of each example's project."""
    found = tmp_path_factory.mktemp("parts")
    for name in OPTIONS:
        shutil.copytree(
            PARTS / name, found / name, ignore=shutil.ignore_patterns(".rehearsal", "__pycache__")
        )
    return found


@pytest.fixture(scope="module")
def rehearsals(folder: Path) -> Generator[Mapping[str, Future[subprocess.CompletedProcess[str]]]]:
    """The rehearsals side by side: each waits more than it computes."""
    with ThreadPoolExecutor(len(OPTIONS)) as pool:
        yield {
            name: pool.submit(command, folder, "rehearse", name, *options)
            for name, options in OPTIONS.items()
        }


@pytest.mark.parametrize(
    ("name", "registered"),
    [
        pytest.param("rehearsal", 6, id="a program without Holdfast in it"),
        pytest.param("pools", 8, id="pools on an existing cluster"),
    ],
)
def test_an_example_is_rehearsed_from_preview_to_destroy(
    folder: Path,
    rehearsals: Mapping[str, Future[subprocess.CompletedProcess[str]]],
    name: str,
    registered: int,
) -> None:
    ended = rehearsals[name].result()
    assert ended.returncode == 0
    assert "The policies judged no training namespace" in ended.stdout
    assert len(ended.stdout.splitlines()) <= _SCREEN, ended.stdout
    assert "Updating (dev)" in (folder / name / ".rehearsal/program-run.log").read_text()
    steps = ended.stdout.rpartition("Rehearsal of dev")[2]
    for said in (
        f"{registered} to create",
        f"{registered} created",
        "nothing changed",
        "no drift",
        f"{registered} deleted; nothing is left",
    ):
        assert said in steps, f"a step shows it: {steps}"
    tracked = [
        each for each in (PARTS / name).rglob("*.*") if not {".rehearsal", "__pycache__"} & {*each.parts}
    ]
    for each in tracked:
        copy = folder / name / each.relative_to(PARTS / name)
        assert copy.read_bytes() == each.read_bytes()


@pytest.mark.soak
def test_the_example_with_a_training_cluster_is_judged_and_rehearsed(tmp_path: Path) -> None:
    shutil.copytree(PARTS / "training-cluster", tmp_path / "training-cluster")
    ended = command(tmp_path, "rehearse", "training-cluster")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "no violations, 1 advisory message" in ended.stdout
    assert "retained: training-spot-role" in ended.stdout
