"""The pack builds as one folder that needs nothing of this repository beside it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pack import RULES
from pulumi_holdfast.cli.policy_pack import build
from pulumi_holdfast.ladder.errors import ConfigError
from tests.support.doc_pages import ROOT

#: Imports the pack as Pulumi's launcher does, and prints its rules and the files of its modules.
IMPORT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import server
from pack import RULES
from pulumi_holdfast.ladder.machines import machine_catalogue
for cloud in ("aws", "azure", "gcp"):
    assert machine_catalogue(cloud)
files = [module.__file__ for name, module in sys.modules.items() if name.startswith("holdfast")]
print(json.dumps([[rule.name for rule in RULES], files]))
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built pack."""
    folder = tmp_path_factory.mktemp("pack") / "policy-pack"
    build(folder)
    return folder


def test_pack_runs_from_its_folder_alone(bundle: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-I", "-B", "-c", IMPORT, str(bundle)],
        cwd=bundle.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    rules, files = json.loads(ran.stdout)
    assert rules == [rule.name for rule in RULES]
    elsewhere = [file for file in files if not file.startswith(str(bundle))]
    assert not elsewhere


def test_folder_holds_what_pulumi_needs(bundle: Path) -> None:
    description = (bundle / "PulumiPolicy.yaml").read_text("utf-8")
    assert "virtualenv: venv" in description
    assert "version: " in description
    for name in ("requirements.txt", "__main__.py", "profiles/strict.json"):
        assert (bundle / name).is_file(), f"{name} is part of it"
    assert not list(bundle.rglob("__pycache__"))


def test_build_replaces_a_pack_and_nothing_else(bundle: Path, tmp_path: Path) -> None:
    build(bundle)
    assert (bundle / "__main__.py").is_file()
    (tmp_path / "notes.txt").write_text("keep", "utf-8")
    with pytest.raises(ConfigError, match="Name another folder"):
        build(tmp_path)
    assert (tmp_path / "notes.txt").is_file()


def test_make_pack_builds_into_a_folder_that_git_ignores() -> None:
    assert "pack dist/policy-pack" in (ROOT / "Makefile").read_text("utf-8")
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert {"dist/", "/dist/", "/dist"} & {*ignored}
