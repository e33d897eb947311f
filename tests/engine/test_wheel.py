"""The wheel installs one name, holds every data file, and works beside a user's own `components` folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest
from uv import find_uv_bin

ROOT: Final = Path(__file__).parents[2]
PARTS: Final = tuple(sorted(link.name for link in (ROOT / "holdfast").iterdir() if link.is_symlink()))

#: A user's program: their own `components` package stands first on the import path, as in any Pulumi project.
PROGRAM: Final = """
import asyncio

import pulumi
from pulumi.runtime import MockCallArgs, MockResourceArgs, Mocks, set_mocks, test


class Recorder(Mocks):
    def new_resource(self, args: MockResourceArgs):
        print(args.typ)
        return f"{args.name}-id", args.inputs

    def call(self, args: MockCallArgs):
        return {}


set_mocks(Recorder(), preview=True)

import components
from holdfast.components.pools.karpenter import KarpenterPool, KarpenterPoolArgs
from holdfast.components.pools.karpenter import KWOK
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import machine_catalogue
from holdfast.scheduling.pools import Pool

assert components.OWNER == "the user"


@test
def preview():
    KarpenterPool(
        "spot",
        KarpenterPoolArgs(
            pool=Pool(name="spot", capacity=CapacityType.SPOT, has_gpus=False, max_nodes=4),
            machines=[machine_catalogue("aws")["m7i.xlarge"]],
            node_class=KWOK,
            weight=1,
        ),
    )


preview()
"""


def run(*command: str, cwd: Path) -> str:
    answer = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, f"{' '.join(command)}: {answer.stdout}{answer.stderr}"
    return answer.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what git tracks."""
    source = tmp_path_factory.mktemp("source")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    archive = subprocess.run(
        ["tar", "--create", "--null", "--files-from=-", "--ignore-failed-read"],
        cwd=ROOT,
        input=tracked,
        capture_output=True,
        check=True,
    ).stdout
    subprocess.run(["tar", "--extract"], cwd=source, input=archive, check=True)
    built = tmp_path_factory.mktemp("wheel")
    code = f"from setuptools import build_meta; build_meta.build_wheel({str(built)!r})"
    run(sys.executable, "-c", code, cwd=source)
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_installs_one_top_level_name(wheel: Path) -> None:
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"holdfast"}, (
        "any other name would shadow a user's own package"
    )


def test_the_wheel_holds_every_source_and_data_file(wheel: Path) -> None:
    tracked = run("git", "ls-files", *PARTS, cwd=ROOT).splitlines()
    packed = {name.removeprefix("holdfast/") for name in zipfile.ZipFile(wheel).namelist()}
    wanted = {
        name
        for name in tracked
        if (ROOT / name).is_file() and Path(name).suffix not in {".in", ".lock", ".md"}
    }
    assert sum(not name.endswith(".py") for name in wanted) > 30, "charts and machine tables are data files"
    assert wanted - packed == set(), "a part would fail in an installed package"
    assert "py.typed" in packed, "type checkers would ignore the annotations"


@pytest.mark.registry
def test_an_installed_pool_previews_beside_a_users_own_components(wheel: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "components").mkdir(parents=True)
    (project / "components" / "__init__.py").write_text('OWNER = "the user"\n')
    (project / "program.py").write_text(PROGRAM)
    uv, python = find_uv_bin(), str(tmp_path / "venv" / "bin" / "python")
    run(uv, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv"), cwd=tmp_path)
    constraints = str(ROOT / "requirements.lock")
    run(
        uv,
        "pip",
        "install",
        "--quiet",
        "--python",
        python,
        "--constraints",
        constraints,
        str(wheel),
        cwd=tmp_path,
    )
    printed = run(python, "program.py", cwd=project)
    assert "kubernetes:karpenter.sh/v1:NodePool" in printed, "the component registers its NodePool"
