"""A build creates missing pieces, keeps current ones, and never leaves a partial piece."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.cli.__main__ import main
from pulumi_holdfast.config import versions
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.catalog import TOOLS, tool_named
from pulumi_holdfast.rehearsal.tools.command import build
from pulumi_holdfast.rehearsal.tools.locate import find_tool, take_survey
from pulumi_holdfast.rehearsal.tools.toolchain import GoRunner, Stopped, find_go
from tests.support.fakes.go_toolchain import PROJECT, FakeGo, checkout, program_printing


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    pretended = FakeGo.install(tmp_path / "go")
    monkeypatch.setenv("PATH", pretended.path)
    return pretended


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "checkout").mkdir()
    return checkout(tmp_path / "checkout")


def make(workspace: Workspace) -> str:
    shown: list[str] = []
    build(workspace, shown.append)
    return "\n".join(shown)


def change_a_pin(workspace: Workspace) -> None:
    with (workspace.project_root / "tools/pulumi/go.sum").open("a", encoding="utf-8") as sums:
        sums.write("example.com/new v1.0.0 h1:x\n")


def packages(module: str) -> list[str]:
    return sorted(tool.package for tool in TOOLS if tool.module == module)


def test_fresh_checkout_builds_every_piece_once(go: FakeGo, workspace: Workspace) -> None:
    shown = make(workspace)
    assert go.built == sorted(tool.package for tool in TOOLS)
    assert take_survey(workspace).missing == []
    assert all(find_tool(tool.name, workspace).parent == workspace.tools_bin for tool in TOOLS)
    assert "kuberay-operator chart" in shown


def test_the_schema_of_the_plugin_comes_from_its_module(go: FakeGo, workspace: Workspace) -> None:
    make(workspace)
    calls = (go.folder / "calls").read_text(encoding="utf-8").splitlines()
    (build,) = [call for call in calls if call.startswith("build") and call.endswith(" ./")]
    assert "-overlay=" in build
    assert not (workspace.project_root / "tools/pulumi-kubernetes/schema.json").exists()


def test_second_run_builds_nothing_and_needs_no_go(go: FakeGo, workspace: Workspace) -> None:
    make(workspace)
    go.forget()
    assert "nothing to make (20 already there)" in make(workspace)
    assert go.built == []
    (go.folder / "bin" / "go").unlink()
    assert "nothing to make" in make(workspace)


def test_only_changed_and_deleted_programs_are_rebuilt(go: FakeGo, workspace: Workspace) -> None:
    make(workspace)
    go.forget()
    change_a_pin(workspace)
    make(workspace)
    assert go.built == packages("pulumi")
    make(workspace)
    go.forget()
    (workspace.tools_bin / "helm").unlink()
    make(workspace)
    assert go.built == ["helm.sh/helm/v4/cmd/helm"]


def test_accepted_program_on_path_is_not_built(go: FakeGo, workspace: Workspace) -> None:
    pin = tool_named("etcd").pin(workspace.project_root)
    program_printing(go.folder / "bin" / "etcd", f"etcd Version: {pin}")
    shown = make(workspace)
    assert "go.etcd.io/etcd/server/v3" not in go.built
    assert "from PATH" in shown


def test_charts_have_their_crds_and_the_published_version(go: FakeGo, workspace: Workspace) -> None:
    make(workspace)
    chart = workspace.charts_dir / "karpenter-kwok"
    crds = sorted(path.name for path in (chart / "crds").iterdir())
    assert crds == ["kwoknodeclasses.yaml", "nodepools.yaml"]
    assert os.access(chart / "Chart.yaml", os.W_OK), "read-only files cannot be replaced"
    chart = workspace.charts_dir / "karpenter"
    described = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    published = {"version": versions.KARPENTER, "appVersion": versions.KARPENTER}
    assert described == {"name": "karpenter", **published}
    image = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8"))["controller"]["image"]
    assert (image["tag"], image["digest"]) == (versions.KARPENTER, ""), "an old digest would override it"
    assert (chart / "crds" / "ec2nodeclasses.yaml").is_file()


def test_chart_with_a_changed_layout_is_refused(go: FakeGo, workspace: Workspace) -> None:
    values = go.folder / "modules/github.com/aws/karpenter-provider-aws/charts/karpenter/values.yaml"
    values.unlink()
    values.write_text("image: {tag: 1.0.0}\n", encoding="utf-8")
    with pytest.raises(RehearsalError, match=r"has 0 lines with `tag:` instead of one"):
        make(workspace)
    assert not (workspace.charts_dir / "karpenter").exists()


def test_failed_build_keeps_the_old_program(go: FakeGo, workspace: Workspace) -> None:
    make(workspace)
    before = (workspace.tools_bin / "pulumi").read_text(encoding="utf-8")
    change_a_pin(workspace)
    go.fails_with("# some/package\n./x.go:3:1: undefined: Y\n")
    with pytest.raises(RehearsalError, match=r"the build of pulumi failed\n.*some/package\n.*undefined: Y"):
        make(workspace)
    assert (workspace.tools_bin / "pulumi").read_text(encoding="utf-8") == before
    assert take_survey(workspace).missing == ["pulumi"]
    go.works()
    make(workspace)
    assert take_survey(workspace).missing == []


def test_partial_piece_of_an_interrupted_run_is_removed(go: FakeGo, workspace: Workspace) -> None:
    half = workspace.tools_dir / "partial" / "helm"
    half.parent.mkdir(parents=True)
    half.write_text("half", encoding="utf-8")
    make(workspace)
    assert not half.exists(), "a partial program must not remain"
    assert "built" in (workspace.tools_bin / "helm").read_text(encoding="utf-8")


def test_stop_ends_a_running_build(go: FakeGo, workspace: Workspace) -> None:
    go.hangs()
    runner = GoRunner(find_go(["helm"]))
    threading.Timer(0.05, runner.stop).start()
    with pytest.raises(Stopped):
        runner.run("helm", ("build", "-o", "x", "helm"), workspace.project_root)


def test_no_build_starts_after_stop(go: FakeGo, workspace: Workspace) -> None:
    runner = GoRunner(find_go(["helm"]))
    runner.stop()
    with pytest.raises(Stopped):
        runner.run("helm", ("build", "-o", "x", "helm"), workspace.project_root)
    assert go.built == [], "a chain must not start its next tool after a failure"


def test_interrupted_run_continues_with_the_next_run(go: FakeGo, workspace: Workspace) -> None:
    go.hangs()
    with subprocess.Popen(
        (sys.executable, "-m", "pulumi_holdfast.cli", "tools"),
        cwd=workspace.project_root,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any("pulumi: started" in line for line in process.stdout), "the builds must have started"
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=30)
    assert process.returncode == 130
    assert output == "interrupted: run `holdfast tools` again and it continues from here\n"
    (go.folder / "hangs").unlink()
    make(workspace)
    assert take_survey(workspace).missing == []


@pytest.mark.parametrize("arguments", [(), ("which", "helm"), ("crd-charts",)])
def test_failure_prints_one_line_and_exits_with_1(
    arguments: tuple[str, ...],
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(workspace.project_root)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["tools", *arguments]) == 1
    output = capsys.readouterr().err
    assert output.startswith("error: ")
    assert "Traceback" not in output
    assert output.count("\n") == 1
