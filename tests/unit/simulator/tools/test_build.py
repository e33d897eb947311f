"""What is missing is made, what is there is left alone, and nothing half made is ever taken for whole."""

import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from holdfast.__main__ import main
from holdfast.infra import versions
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.catalog import TOOLS, tool_named
from holdfast.simulator.tools.command import build
from holdfast.simulator.tools.locate import find_tool, take_survey
from holdfast.simulator.tools.toolchain import GoRunner, Stopped, find_go
from tests.support.tool_workspace import PROJECT, PretendedGo, checkout, says


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedGo:
    pretended = PretendedGo.install(tmp_path / "go")
    monkeypatch.setenv("PATH", pretended.path)
    return pretended


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "checkout").mkdir()
    return checkout(tmp_path / "checkout")


def make(workspace: Workspace) -> str:
    shown = io.StringIO()
    build(workspace, Console(file=shown, width=100))
    return shown.getvalue()


def packages(module: str) -> list[str]:
    return sorted(tool.package for tool in TOOLS if tool.module == module)


def test_on_a_fresh_checkout_everything_is_made_once(go: PretendedGo, workspace: Workspace) -> None:
    shown = make(workspace)
    assert go.built == sorted(tool.package for tool in TOOLS), "each tool is built from its package, once"
    assert take_survey(workspace).missing == [], "and then nothing is missing"
    assert all(find_tool(tool.name, workspace).parent == workspace.tools_bin for tool in TOOLS), (
        "all are found"
    )
    assert "kuberay-operator chart" in shown, "a chart is told apart from the program of the same name"


def test_a_second_run_makes_nothing_and_says_so(go: PretendedGo, workspace: Workspace) -> None:
    make(workspace)
    go.forget()
    assert "nothing to make (19 already there)" in make(workspace), "one line, no table"
    assert go.built == [], "nothing is built again"


def test_without_anything_missing_go_is_not_needed(go: PretendedGo, workspace: Workspace) -> None:
    make(workspace)
    (go.folder / "bin" / "go").unlink()
    assert "nothing to make" in make(workspace), "a machine with the tools needs no compiler"


def test_a_changed_pin_rebuilds_that_module_and_no_other(go: PretendedGo, workspace: Workspace) -> None:
    make(workspace)
    go.forget()
    with (workspace.project_root / "tools/pulumi/go.sum").open("a", encoding="utf-8") as sums:
        sums.write("example.com/new v1.0.0 h1:x\n")
    make(workspace)
    assert go.built == packages("pulumi"), "the pins of the other modules are as they were"


def test_a_deleted_program_alone_is_built_again(go: PretendedGo, workspace: Workspace) -> None:
    make(workspace)
    go.forget()
    (workspace.tools_bin / "helm").unlink()
    make(workspace)
    assert go.built == ["helm.sh/helm/v4/cmd/helm"], "the others still stand"


def test_what_path_has_at_a_good_version_is_not_built(go: PretendedGo, workspace: Workspace) -> None:
    pin = tool_named("etcd").pin(workspace.project_root)
    says(go.folder / "bin" / "etcd", f"etcd Version: {pin}")
    shown = make(workspace)
    assert "go.etcd.io/etcd/server/v3" not in go.built, "the user's etcd is used"
    assert "from PATH" in shown, "and the table says so"


def test_charts_are_copied_writable_with_the_crds_they_lack(go: PretendedGo, workspace: Workspace) -> None:
    make(workspace)
    chart = workspace.charts_dir / "karpenter-kwok"
    crds = sorted(path.name for path in (chart / "crds").iterdir())
    assert crds == ["kwoknodeclasses.yaml", "nodepools.yaml"], "the node class lies elsewhere in the module"
    assert os.access(chart / "Chart.yaml", os.W_OK), "read-only files cannot be replaced"


def test_a_chart_that_upstream_numbers_late_is_copied_as_it_is_published(
    go: PretendedGo, workspace: Workspace
) -> None:
    make(workspace)
    chart = workspace.charts_dir / "karpenter"
    described = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    assert described == {
        "name": "karpenter",
        "version": versions.KARPENTER,
        "appVersion": versions.KARPENTER,
    }, "the module's chart says the version of a release before"
    image = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8"))["controller"]["image"]
    assert (image["tag"], image["digest"]) == (versions.KARPENTER, ""), (
        "the older image's digest would win over the tag"
    )
    assert (chart / "crds" / "ec2nodeclasses.yaml").is_file(), "its CRDs lie elsewhere in the module"


def test_a_chart_whose_numbers_are_not_where_they_were_is_refused(
    go: PretendedGo, workspace: Workspace
) -> None:
    values = go.folder / "modules/github.com/aws/karpenter-provider-aws/charts/karpenter/values.yaml"
    values.unlink()
    values.write_text("image: {tag: 1.0.0}\n", encoding="utf-8")
    with pytest.raises(RehearsalError, match=r"has 0 lines of `tag:` where one was expected"):
        make(workspace)
    assert not (workspace.charts_dir / "karpenter").exists(), "a chart of two versions is none"


def test_a_failed_build_leaves_the_old_program_and_no_half_one(go: PretendedGo, workspace: Workspace) -> None:
    make(workspace)
    before = (workspace.tools_bin / "pulumi").read_text(encoding="utf-8")
    with (workspace.project_root / "tools/pulumi/go.sum").open("a", encoding="utf-8") as sums:
        sums.write("example.com/new v1.0.0 h1:x\n")
    go.fails_with("# some/package\n./x.go:3:1: undefined: Y\n")
    with pytest.raises(RehearsalError, match=r"pulumi could not be built\n.*some/package\n.*undefined: Y"):
        make(workspace)
    assert (workspace.tools_bin / "pulumi").read_text(encoding="utf-8") == before, "the old one is whole"
    assert take_survey(workspace).missing == ["pulumi"], "and known to be old"
    go.works()
    make(workspace)
    assert take_survey(workspace).missing == [], "the next run goes on from there"


def test_what_an_interrupted_run_left_is_cleared_away(go: PretendedGo, workspace: Workspace) -> None:
    half = workspace.tools_bin.parent / "partial" / "helm"
    half.parent.mkdir(parents=True)
    half.write_text("half", encoding="utf-8")
    make(workspace)
    assert not half.exists(), "half a program must not be in the way for ever"
    assert "built" in (workspace.tools_bin / "helm").read_text(encoding="utf-8"), "nor become the program"


def test_stopping_ends_a_running_build_at_once(go: PretendedGo, workspace: Workspace) -> None:
    go.hangs()
    runner = GoRunner(find_go(["helm"]))
    threading.Timer(0.05, runner.stop).start()
    with pytest.raises(Stopped):
        runner.run("helm", ("build", "-o", "x", "helm"), workspace.project_root)


def test_after_stopping_nothing_starts(go: PretendedGo, workspace: Workspace) -> None:
    runner = GoRunner(find_go(["helm"]))
    runner.stop()
    with pytest.raises(Stopped):
        runner.run("helm", ("build", "-o", "x", "helm"), workspace.project_root)
    assert go.built == [], "a chain must not begin its next tool after another failed"


def test_an_interruption_ends_the_builds_and_the_next_run_goes_on(
    go: PretendedGo, workspace: Workspace
) -> None:
    go.hangs()
    with subprocess.Popen(
        (sys.executable, "-m", "holdfast", "tools"),
        cwd=workspace.project_root,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None, "asked for above"
        assert any("pulumi: started" in line for line in process.stdout), "the builds have to be under way"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 130, "the shell's code for an interruption"
    assert told == "interrupted: run `holdfast tools` again and it continues from here\n", "no traceback"
    (go.folder / "hangs").unlink()
    make(workspace)
    assert take_survey(workspace).missing == [], "nothing half made is in the way"


@pytest.mark.parametrize("arguments", [(), ("which", "helm"), ("crd-charts",)])
def test_a_failure_is_one_line_and_exit_code_1(
    arguments: tuple[str, ...],
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(workspace.project_root)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["tools", *arguments]) == 1, "a script can see the failure"
    told = capsys.readouterr().err
    assert told.startswith("error: "), "the message is marked"
    assert "Traceback" not in told, "no traceback reaches a user"
    assert told.count("\n") == 1, "one message"
