"""Builds a release twice, in two folders, and compares the bytes: `holdfast release FOLDER`.

A release consists of the wheel, the policy pack, the kubectl plugin, the controller's chart, the template of a project, the
bill of materials and their sums. They are built from the last commit, not from the files beside it, with the commit's time as
the time of every file. The archive of the tools is not built here: it takes half an hour.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.cli.release.bill import bill_of_materials
from pulumi_holdfast.ladder.errors import ConfigError, Problem

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

_ROOT: Final = Path(__file__).resolve().parents[2]
SUMS: Final = "SHA256SUMS"
NOTES: Final = "notes.md"
#: The packages that a program needs on every cloud, with their hashes.
_LOCK: Final = "infra/requirements.txt"
#: The projects in the template, one for each cloud.
_TEMPLATES: Final = ("aws-dev", "azure-dev", "gcp-dev")
_UV: Final = Path(sys.executable).with_name("uv")


def release(folder: Path, tag: str | None, more: Sequence[Path] = ()) -> str:
    """Write the files of a release to a folder, replacing it, and the notes beside it; return their sums.

    `more` are files of the release that are already built.

    Raises ConfigError if two builds differ, or if the tag is not the version or has no chapter in the changelog.
    """
    version = project_version((_ROOT / "pyproject.toml").read_text("utf-8"))
    notes = "" if tag is None else release_notes(tag, version, (_ROOT / "CHANGELOG.md").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        # Folders of other names and depths: a path that gets into a file is found.
        first, second = _build(Path(one), version), _build(Path(other) / "deeper/than/before", version)
    check_same(first, second)
    first |= {file.name: file.read_bytes() for file in more}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sums = sums_of(first)
    for name, content in {**first, SUMS: sums.encode()}.items():
        (folder / name).write_bytes(content)
    if notes:
        (folder.parent / NOTES).write_text(notes, "utf-8")
    return sums


def project_version(pyproject: str) -> str:
    """The version of the project, which is written in pyproject.toml."""
    return str(tomllib.loads(pyproject)["project"]["version"])


def release_notes(tag: str, version: str, changelog: str) -> str:
    """The chapter of a version in the changelog. Raises ConfigError if the tag is not the version, or has no chapter."""
    if tag != f"v{version}":
        raise ConfigError.of(
            field="tag",
            value=tag,
            allowed=f"v{version}, the version in pyproject.toml",
            fix="Change the version in pyproject.toml and commit it; then tag that commit.",
        )
    _, heading, text = changelog.partition(f"\n## {version}")
    if not heading:
        raise ConfigError.of(
            field="CHANGELOG.md",
            value=f"no chapter {version}",
            allowed="a chapter for each release, which says what breaks",
            fix=f"Rename `## Unreleased` to `## {version}`.",
        )
    return text.partition("\n## ")[0].partition("\n")[2].strip() + "\n"


def check_same(first: Mapping[str, bytes], second: Mapping[str, bytes]) -> None:
    """Compare two builds. Raises ConfigError that names each file that differs."""
    differing = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    if differing:
        raise ConfigError(
            [
                Problem(
                    field=name,
                    value="two builds with different bytes",
                    allowed="the same bytes from the same commit",
                    fix="Remove what depends on the folder, the time or the order of files.",
                )
                for name in differing
            ]
        )


def sums_of(files: Mapping[str, bytes]) -> str:
    """The sums of files, as `sha256sum --check` reads them."""
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))


def packed(folder: Path, name: str, time: int) -> bytes:
    """A folder as a tar archive below `name`: without owners, and with one time for all files.

    It is not compressed: compressed bytes differ between versions of zlib.
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as target:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(f"{name}/{file.relative_to(folder).as_posix()}")
            content = file.read_bytes()
            entry.size, entry.mtime, entry.mode = len(content), time, 0o644
            target.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def _build(folder: Path, version: str) -> dict[str, bytes]:
    """The files of a release by name, built in a folder from the last commit."""
    source, output = folder / "source", folder / "output"
    source.mkdir(parents=True)
    time = int(_output("git", "log", "-1", "--format=%ct"))
    commit = subprocess.run(
        ["git", "-c", "tar.umask=0022", "archive", "HEAD"], cwd=_ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(commit.stdout)) as files:
        files.extractall(source, filter="tar")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(time), "PYTHONDONTWRITEBYTECODE": "1"}
    wheel = (
        _UV,
        "build",
        "--quiet",
        "--wheel",
        "--offline",
        "--no-build-isolation",
        "--python",
        sys.executable,
    )
    for command in (
        [*wheel, "--out-dir", output],
        [sys.executable, "-m", "pulumi_holdfast.cli", "pack", output / "policy-pack"],
        [sys.executable, "-m", "pulumi_holdfast.cli", "plugin", output / "kubectl-holdfast"],
        [sys.executable, "-m", "pulumi_holdfast.cli", "chart", output / "chart"],
        *(
            [
                sys.executable,
                "-m",
                "pulumi_holdfast.cli",
                "init",
                name,
                "--folder",
                output / "template" / name,
            ]
            for name in _TEMPLATES
        ),
    ):
        subprocess.run(
            [str(word) for word in command],
            cwd=source,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
    folders = {"policy-pack": "policy-pack", "controller-chart": "chart", "template": "template"}
    bill = bill_of_materials(
        version, (source / _LOCK).read_text("utf-8"), datetime.fromtimestamp(time, tz=UTC)
    )
    return {
        **{built.name: built.read_bytes() for built in output.glob("*.whl")},
        **{
            f"holdfast-{name}-{version}.tar": packed(output / built, f"holdfast-{name}-{version}", time)
            for name, built in folders.items()
        },
        "kubectl-holdfast": (output / "kubectl-holdfast").read_bytes(),
        f"holdfast-{version}.cdx.json": bill.encode(),
    }


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="what it holds is replaced")
    parser.add_argument(
        "--tag", help="refuse a tag that is not the version, or has no chapter in the changelog"
    )
    parser.add_argument(
        "--with",
        dest="more",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a file of the release that is already built; may be repeated",
    )


def run(parsed: argparse.Namespace) -> int:
    """Build a release and print its sums."""
    print(release(parsed.folder, parsed.tag, parsed.more), end="")
    return 0
