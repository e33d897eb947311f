"""A build creates missing pieces, keeps current ones, never leaves a partial piece, and explains its failures."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.cli.__main__ import main
from pulumi_holdfast.config import versions
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.build import (
    PIECES,
    Go,
    chains,
    exclusive,
    explain,
    fingerprint,
    fingerprint_of,
    title_of,
)
from pulumi_holdfast.rehearsal.tools.catalog import TOOLS, Tool, tool_named
from pulumi_holdfast.rehearsal.tools.charts import CHARTS
from pulumi_holdfast.rehearsal.tools.command import build
from pulumi_holdfast.rehearsal.tools.locate import find_tool, missing_pieces
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


def missing(workspace: Workspace) -> list[str]:
    return [title_of(piece) for piece in missing_pieces(workspace)]


def change_a_pin(workspace: Workspace) -> None:
    with (workspace.project_root / "tools/pulumi/go.sum").open("a", encoding="utf-8") as sums:
        sums.write("example.com/new v1.0.0 h1:x\n")


def packages(module: str) -> list[str]:
    return sorted(tool.package for tool in TOOLS if tool.module == module)


def test_fresh_checkout_builds_every_piece_once(go: FakeGo, workspace: Workspace) -> None:
    shown = make(workspace)
    assert go.built == sorted(tool.package for tool in TOOLS), "each tool is built once"
    assert missing(workspace) == [], "nothing is missing afterwards"
    assert all(find_tool(tool.name, workspace).parent == workspace.tools_bin for tool in TOOLS), "all found"
    assert "kuberay-operator chart" in shown, "a chart and a program can have the same name"


def test_the_schema_of_the_plugin_comes_from_its_module(go: FakeGo, workspace: Workspace) -> None:
    make(workspace)
    calls = (go.folder / "calls").read_text(encoding="utf-8").splitlines()
    (build,) = [call for call in calls if call.startswith("build") and call.endswith(" ./")]
    assert "-overlay=" in build
    assert not (workspace.project_root / "tools/pulumi-kubernetes/schema.json").exists()


def test_second_run_builds_nothing_and_needs_no_go(go: FakeGo, workspace: Workspace) -> None:
    make(workspace)
    go.forget()
    assert make(workspace).startswith("tools: nothing to make: all 20")
    assert go.built == [], "no tool is built again"
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
    make(workspace)
    assert "go.etcd.io/etcd/server/v3" not in go.built


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
    assert (workspace.tools_bin / "pulumi").read_text(encoding="utf-8") == before, "the old program remains"
    assert missing(workspace) == ["pulumi"], "it is not current"
    go.works()
    make(workspace)
    assert missing(workspace) == [], "the next run continues"


def test_partial_piece_of_an_interrupted_run_is_removed(go: FakeGo, workspace: Workspace) -> None:
    half = workspace.tools_dir / "partial" / "helm"
    half.parent.mkdir(parents=True)
    half.write_text("half", encoding="utf-8")
    make(workspace)
    assert not half.exists(), "a partial program must not remain"
    assert "built" in (workspace.tools_bin / "helm").read_text(encoding="utf-8")


def test_stop_ends_a_running_build_and_starts_no_other(go: FakeGo, workspace: Workspace) -> None:
    go.hangs()
    runner = Go()
    threading.Timer(0.05, runner.stop).start()
    for _ in range(2):
        with pytest.raises(RehearsalError):
            runner.run("helm", ("build", "-o", "x", "helm"), workspace.project_root)
    assert len(go.built) <= 1


def test_missing_go_is_reported(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RehearsalError, match=r"go is not on PATH; install it from https://go\.dev/dl"):
        make(workspace)


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("write /tmp/go-build1/b001/_pkg_.a: no space left on device", "go clean -cache"),
        ("mkdir /home/u/.cache: disk quota exceeded", "go clean -cache"),
        ("dial tcp 10.0.0.1:443: i/o timeout", "GOPROXY"),
        ("reading https://proxy.test/x: 403 Forbidden ", "GOPROXY"),
        ("go: x@v1: module lookup disabled by GOPROXY=off", "GOPROXY"),
        ("SECURITY ERROR: checksum mismatch, dial tcp: i/o timeout", "do not use it"),
        ("compile: signal: killed", "memory"),
    ],
)
def test_known_failure_of_go_is_explained_with_the_fix(line: str, fix: str) -> None:
    said = explain("helm", ["k8s.io/api/core/v1", "go: downloading a v1", line, "other/pkg"])
    title, *quoted = said.splitlines()
    assert fix in title
    assert quoted == [f"  | {line.rstrip()}"]


def test_unknown_failure_of_go_shows_its_last_lines() -> None:
    said = explain("helm", [f"error number {n}" for n in range(100)]).splitlines()
    assert said[0] == "the build of helm failed"
    assert said[-1] == "  | error number 99"
    assert len(said) < 20


@given(st.lists(st.sampled_from(PIECES), unique=True))
def test_chains_contain_each_missing_piece_once(some: list[Tool]) -> None:
    planned = chains(some)
    assert sorted(title_of(piece) for chain in planned for piece in chain) == sorted(map(title_of, some))
    assert all(planned)
    modules = [{piece.module for piece in chain if isinstance(piece, Tool)} for chain in planned]
    assert sum(map(len, modules)) == len(set[str]().union(*modules)), (
        "two chains would compile the same packages"
    )


parts = st.lists(st.text(), min_size=1)


@given(parts, parts)
def test_fingerprints_are_equal_only_for_equal_parts(one: list[str], two: list[str]) -> None:
    assert (fingerprint(*one) == fingerprint(*two)) == (one == two)


@pytest.mark.parametrize("file", ["kubernetes/go.mod", "kubernetes/go.sum", "karpenter/kwok/main.go"])
def test_fingerprint_changes_with_the_files_of_its_module_only(workspace: Workspace, file: str) -> None:
    before = {tool: fingerprint_of(tool, workspace) for tool in TOOLS}
    path = workspace.project_root / "tools" / file
    path.write_text(f"{path.read_text(encoding='utf-8')}\n", encoding="utf-8")
    changed = {tool.module for tool in TOOLS if fingerprint_of(tool, workspace) != before[tool]}
    assert changed == {file.partition("/")[0]}


def test_fingerprint_changes_with_flags_and_that_of_a_chart_not_with_other_pins(workspace: Workspace) -> None:
    helm, jobset = tool_named("helm"), CHARTS[0]
    assert fingerprint_of(replace(helm, stamps=()), workspace) != fingerprint_of(helm, workspace)
    before = fingerprint_of(jobset, workspace)
    path = workspace.project_root / "tools" / "kubernetes" / "go.mod"
    path.write_text(path.read_text().replace("helm.sh/helm/v4 v4", "helm.sh/helm/v4 v5"))
    assert fingerprint_of(jobset, workspace) == before


def test_second_build_waits_for_the_first(workspace: Workspace) -> None:
    waiting, order = threading.Event(), list[str]()

    def second() -> None:
        with exclusive(workspace, lambda _: waiting.set()):
            order.append("second runs")

    thread = threading.Thread(target=second)
    with exclusive(workspace, order.append):
        thread.start()
        assert waiting.wait(timeout=10)
        order.append("first ends")
    thread.join(timeout=10)
    assert order == ["first ends", "second runs"]


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
    assert missing(workspace) == [], "no partial piece blocks the build"


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
