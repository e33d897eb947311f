"""An archive of built tools: the same bytes from the same tools, and no build where it fits."""

import hashlib
import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.archive import SUMS, VARIABLE, pack
from pulumi_holdfast.rehearsal.tools.catalog import TOOLS
from pulumi_holdfast.rehearsal.tools.command import build
from pulumi_holdfast.rehearsal.tools.locate import missing_pieces
from tests.support.fakes.go_toolchain import FakeGo, checkout


def make(workspace: Workspace) -> str:
    shown: list[str] = []
    build(workspace, shown.append)
    return "\n".join(shown)


def empty_checkout(folder: Path) -> Workspace:
    folder.mkdir(parents=True)
    return checkout(folder)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A checkout whose tools are built; afterward no Go is on PATH."""
    workspace = empty_checkout(tmp_path / "built")
    monkeypatch.setenv("PATH", FakeGo.install(tmp_path / "go").path)
    make(workspace)
    monkeypatch.setenv("PATH", str(tmp_path))
    return workspace


@pytest.fixture
def archive(built: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "release/holdfast-tools.tar.gz"
    pack(built, file)
    monkeypatch.setenv(VARIABLE, str(file))
    return file


def test_archive_is_unpacked_instead_of_a_build(archive: Path, built: Workspace, tmp_path: Path) -> None:
    other = empty_checkout(tmp_path / "deeper/other")
    shown = make(other)
    assert missing_pieces(other) == [], "nothing is left to build, without Go"
    assert archive.name in shown, "where they come from is said"
    for tool in TOOLS:
        taken = other.tools_bin / tool.name
        assert taken.read_bytes() == (built.tools_bin / tool.name).read_bytes(), (
            f"{tool.name} is the built one"
        )
        assert os.access(taken, os.X_OK), f"{tool.name} can run"


def test_archives_of_the_same_tools_are_the_same_bytes(
    archive: Path, built: Workspace, tmp_path: Path
) -> None:
    other = empty_checkout(tmp_path / "copy/of/it")
    shutil.copytree(built.tools_dir, other.tools_dir, dirs_exist_ok=True)
    for path in other.tools_bin.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    assert pack(other, tmp_path / "other.tar.gz") == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert (archive.parent / SUMS).read_text().split()[1] == archive.name


def test_pieces_of_other_pins_are_not_taken(archive: Path, tmp_path: Path) -> None:
    other = empty_checkout(tmp_path / "other")
    with (other.project_root / "tools/pulumi/go.sum").open("a") as sums:
        sums.write("example.com/new v1.0.0 h1:x\n")
    with pytest.raises(RehearsalError, match="go is not on PATH"):
        make(other)
    assert [piece.name for piece in missing_pieces(other)] == ["pulumi"], (
        "only what changed is built, and for that Go is needed"
    )


@pytest.mark.parametrize("fault", ["a changed byte", "no sum", "another sum", "no archive"])
def test_an_archive_that_is_not_the_one_of_its_sum_is_refused(
    archive: Path, tmp_path: Path, fault: str
) -> None:
    sums = archive.parent / SUMS
    if fault == "a changed byte":
        content = archive.read_bytes()
        archive.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif fault == "no sum":
        sums.unlink()
    elif fault == "another sum":
        sums.write_text(f"{'0' * 64}  {archive.name}\n")
    else:
        archive.unlink()
    other = empty_checkout(tmp_path / "other")
    with pytest.raises(RehearsalError, match="download both"):
        make(other)
    assert len(missing_pieces(other)) > len(TOOLS), "nothing of it is used"


@pytest.mark.parametrize("name", ["../outside", "bin/link"])
def test_a_file_outside_of_the_tools_is_refused(archive: Path, tmp_path: Path, name: str) -> None:
    with tarfile.open(archive, "w:gz") as target:
        entry = tarfile.TarInfo(name)
        if name == "bin/link":
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        target.addfile(entry, io.BytesIO())
    (archive.parent / SUMS).write_text(
        f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n"
    )
    with pytest.raises(RehearsalError, match="use an archive of a release"):
        make(empty_checkout(tmp_path / "other"))
    assert not list(tmp_path.rglob("outside"))


def test_tools_that_are_not_built_are_not_packed(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=r"kube-apiserver.*not built"):
        pack(empty_checkout(tmp_path / "empty"), tmp_path / "archive.tar.gz")
