"""The controller's image has what it needs to run, and nothing else."""

import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from uv import find_uv_bin

from pulumi_holdfast.config import versions

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
LOCK = (ROOT / "components/pulumi_holdfast/controller" / "requirements.lock").read_text()


def pins() -> dict[str, str]:
    """The packages of the image, those that only an older Python needs among them."""
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, re.MULTILINE))


def test_every_package_is_pinned_by_hash() -> None:
    entries = re.split(r"\n(?=[a-z])", LOCK.strip())
    assert len(entries) == len(pins())
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "--require-hashes" in DOCKERFILE


@pytest.mark.parametrize("package", sorted(pins()))
def test_the_image_has_the_tested_package_versions(package: str) -> None:
    assert version(package) == pins()[package]


def test_requirements_match_the_lock_file() -> None:
    asked = (ROOT / "components/pulumi_holdfast/controller" / "requirements.in").read_text()
    for package, pinned in re.findall(r"^([a-z0-9-]+)==(\S+)", asked, re.MULTILINE):
        assert pins()[package] == pinned, f"run `make lock` after {package} was changed"


def test_the_image_is_pinned_non_root_and_based_on_the_default_image() -> None:
    assert re.search(r"^ARG PYTHON=\S+@sha256:[0-9a-f]{64}$", DOCKERFILE, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${PYTHON}"}
    assert re.search(r"^USER 65532:65532$", DOCKERFILE, re.MULTILINE)
    assert f"ARG PYTHON=docker.io/library/python:{versions.PYTHON_IMAGE}\n" in DOCKERFILE


def test_the_images_packages_are_sufficient(tmp_path: Path) -> None:
    copied = re.findall(r"^COPY (\S+) /app/(pulumi_holdfast/\S+)$", DOCKERFILE, re.MULTILINE)
    assert copied
    for source, target in copied:
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, tmp_path / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, tmp_path / target)
    for package in pins():
        link_distribution(package, tmp_path)
    answer = subprocess.run(
        # -S: nothing of this machine's own packages.
        [sys.executable, "-S", "-m", "pulumi_holdfast.controller", "--help"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0
    assert "--placeholder-image" in answer.stdout


@pytest.mark.registry
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_wheels_exist_for_the_images_python_on_every_platform(machine: str, tmp_path: Path) -> None:
    python = re.search(r"library/python:(\d+\.\d+)\.", DOCKERFILE)
    assert python
    installed = subprocess.run(
        [
            *(find_uv_bin(), "pip", "install", "--no-config", "--no-deps", "--require-hashes"),
            *("--only-binary", ":all:", "--target", str(tmp_path)),
            *("--python-version", python[1], "--python-platform", f"{machine}-manylinux_2_28"),
            *("--requirements", str(ROOT / "components/pulumi_holdfast/controller" / "requirements.lock")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert installed.returncode == 0
    compiled = {"".join(each.suffixes) for each in tmp_path.rglob("*.so")}
    assert compiled == {f".cpython-{python[1].replace('.', '')}-{machine}-linux-gnu.so"}


def link_distribution(package: str, folder: Path) -> None:
    """Make an installed package be found in a folder."""
    found = distribution(package)
    for top in {each.parts[0] for each in found.files or () if each.parts[0] not in {"..", "__pycache__"}}:
        target = folder / top
        if not target.exists():
            target.symlink_to(Path(str(found.locate_file(top))))
