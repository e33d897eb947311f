"""A tool is found on PATH or in .tools/bin."""

from importlib.metadata import version
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal import paths
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.build import fingerprint_of, put_in_place
from pulumi_holdfast.rehearsal.tools.catalog import tool_named
from pulumi_holdfast.rehearsal.tools.locate import find_tool
from tests.support.fakes.go_toolchain import checkout, executable, program_printing


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    (tmp_path / "checkout").mkdir()
    return checkout(tmp_path / "checkout")


def built(name: str, workspace: Workspace) -> Path:
    tool, made = tool_named(name), executable(workspace.tools_dir / "made", "#!/bin/sh\n")
    put_in_place(tool, made, workspace, fingerprint_of(tool, workspace))
    return workspace.tools_bin / name


def test_accepted_version_on_path_is_preferred(workspace: Workspace, tmp_path: Path) -> None:
    built("kube-scheduler", workspace)
    pin = tool_named("kube-scheduler").pin(workspace.project_root)
    mine = program_printing(tmp_path / "path" / "kube-scheduler", f"Kubernetes v{pin}")
    assert find_tool("kube-scheduler", workspace) == mine
    mine = program_printing(tmp_path / "path" / "pulumi", "v3.999.0")
    assert find_tool("pulumi", workspace) == mine
    program_printing(tmp_path / "path" / "etcd", "etcd Version: 3.5.0")
    ours = built("etcd", workspace)
    assert find_tool("etcd", workspace) == ours, "an old etcd must not run"


def test_unusable_tool_is_reported_with_the_fix(workspace: Workspace, tmp_path: Path) -> None:
    program_printing(tmp_path / "path" / "kwok", "kwok version v0.6.0 go1.22")
    pin = tool_named("kwok").pin(workspace.project_root)
    with pytest.raises(
        RehearsalError,
        match=rf"kwok is missing: the accepted version is exactly {pin}; .* has version 0\.6\.0\. Run `make tools`",
    ):
        find_tool("kwok", workspace)
    with pytest.raises(
        RehearsalError,
        match=r"helm is missing: the accepted version is 4\.\S+ or newer, below 5; none is on PATH.*make tools",
    ):
        find_tool("helm", workspace)
    executable(tmp_path / "path" / "helm", "#!/bin/sh\nexit 1\n")
    with pytest.raises(RehearsalError, match="no readable version"):
        find_tool("helm", workspace)


def test_programs_on_path_without_a_suitable_version_are_skipped(
    workspace: Workspace, tmp_path: Path
) -> None:
    program_printing(tmp_path / "path" / "jobset-controller", "v0.12.0")
    with pytest.raises(RehearsalError, match="cannot print its version"):
        find_tool("jobset-controller", workspace)
    program_printing(tmp_path / "path" / "kubectl", "Client Version: v1.32.0")
    assert find_tool("kubectl", workspace).parent != tmp_path / "path"


def test_tool_of_other_pins_is_refused(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    program_printing(workspace.tools_bin / "helm", "v4.99.0")
    monkeypatch.setenv("PATH", str(workspace.tools_bin))
    with pytest.raises(RehearsalError, match="was built from other pins"):
        find_tool("helm", workspace)
    built("pulumi", workspace)
    with (workspace.project_root / "tools/pulumi/go.sum").open("a", encoding="utf-8") as sums:
        sums.write("example.com/new v1.0.0 h1:x\n")
    with pytest.raises(RehearsalError, match=r"was built from other pins\. Run `make tools`"):
        find_tool("pulumi", workspace)


def test_unknown_name_is_reported_with_the_known_names(workspace: Workspace) -> None:
    with pytest.raises(
        RehearsalError, match=r"'helmet' is no tool of this project; use one of .*helm.*kubectl"
    ):
        find_tool("helmet", workspace)


def test_projects_of_a_user_share_the_tools_of_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "REPOSITORY", tmp_path / "site-packages/repository")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = {Workspace(project_root=tmp_path / name).tools_dir for name in ("one", "two")}
    assert found == {tmp_path / f"cache/holdfast/tools-{version('pulumi-holdfast')}"}
