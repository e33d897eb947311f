"""The plugin as one file."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pulumi_holdfast
from pulumi_holdfast.cli.kubectl.bundle import archive, build, imported_modules, plugin_files

ROOT = Path(pulumi_holdfast.__file__).parent
_HELP_OF_EACH = """
import sys
sys.path.insert(0, sys.argv[1])
from pulumi_holdfast.cli.kubectl.__main__ import main
codes = []
for command in ("jobs", "why", "check", "stop", "resume", "move", "drill", "ui"):
    try:
        main([command, "--help"])
    except SystemExit as ended:
        codes.append(ended.code)
print(codes)
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plugin") / "kubectl-holdfast"
    build(path)
    return path


def test_same_sources_give_the_same_bytes_whatever_the_order_of_the_files() -> None:
    files = plugin_files(ROOT)
    backwards = dict(reversed(list(files.items())))
    assert archive(files) == archive(backwards)


def test_file_runs_without_this_checkout_and_without_any_package(plugin: Path, tmp_path: Path) -> None:
    # -I -S: no environment, no folder of the user, no installed package.
    ended = subprocess.run(
        [sys.executable, "-I", "-S", str(plugin), "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0
    assert "kubectl holdfast" in ended.stdout
    # All in one process: a file keeps no compiled modules.
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _HELP_OF_EACH, str(plugin)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.splitlines()[-1:] == [str([0] * 8)]


def test_file_holds_what_it_imports_and_the_page_and_nothing_that_talks_to_a_cloud(plugin: Path) -> None:
    with zipfile.ZipFile(plugin) as found:
        names = set(found.namelist())
    assert {
        "__main__.py",
        "pulumi_holdfast/cli/kubectl/ui/page.html",
        "pulumi_holdfast/cli/kubectl/ui/page.js",
    } <= names
    folders = {name.split("/")[1] for name in names if name.count("/") > 1}
    assert folders == {"cli", "controller", "ladder"}
    assert not {name for name in names if "connection.py" in name and "controller" in name}
    assert "pulumi_holdfast.cli.kubectl.bundle" not in imported_modules(
        ROOT, "pulumi_holdfast.cli.kubectl.__main__"
    )


def test_missing_kubectl_is_named_with_the_fix(plugin: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-I", str(plugin), "jobs"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: kubectl: got no such program on PATH; allowed: ")
