"""A build creates missing pieces, keeps current ones, never leaves a partial piece, and explains its failures."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pulumi_holdfast.cli.__main__ import main
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.build import exclusive, explain, fingerprint_of, title_of
from pulumi_holdfast.rehearsal.tools.catalog import TOOLS
from pulumi_holdfast.rehearsal.tools.command import build
from pulumi_holdfast.rehearsal.tools.locate import missing_pieces
from tests.support.fakes.go_toolchain import PROJECT, FakeGo, checkout


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


@pytest.mark.parametrize("file", ["kubernetes/go.mod", "kubernetes/go.sum", "karpenter/kwok/main.go"])
def test_fingerprint_changes_with_the_files_of_its_module_only(workspace: Workspace, file: str) -> None:
    before = {tool: fingerprint_of(tool, workspace) for tool in TOOLS}
    path = workspace.project_root / "tools" / file
    path.write_text(f"{path.read_text(encoding='utf-8')}\n", encoding="utf-8")
    changed = {tool.module for tool in TOOLS if fingerprint_of(tool, workspace) != before[tool]}
    assert changed == {file.partition("/")[0]}


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
