"""A fingerprint changes with every input of a piece and with nothing else; builds run one at a time."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.catalog import tool_named
from pulumi_holdfast.rehearsal.tools.charts import CHARTS, chart_fingerprint
from pulumi_holdfast.rehearsal.tools.stamps import binary_fingerprint, exclusive, fingerprint
from tests.support.fakes.go_toolchain import checkout

parts = st.lists(st.text(), min_size=1)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return checkout(tmp_path)


@given(parts, parts)
def test_fingerprints_are_equal_only_for_equal_parts(one: list[str], two: list[str]) -> None:
    assert (fingerprint(*one) == fingerprint(*two)) == (one == two)


@pytest.mark.parametrize("file", ["go.mod", "go.sum"])
def test_changed_pin_or_checksum_changes_the_fingerprint(workspace: Workspace, file: str) -> None:
    helm, pulumi = tool_named("helm"), tool_named("pulumi")
    before = binary_fingerprint(helm, workspace), binary_fingerprint(pulumi, workspace)
    path = workspace.project_root / "tools" / "kubernetes" / file
    path.write_text(f"{path.read_text(encoding='utf-8')}\n", encoding="utf-8")
    assert binary_fingerprint(helm, workspace) != before[0], f"{file} is an input of the build"
    assert binary_fingerprint(pulumi, workspace) == before[1]


def test_changed_own_source_changes_the_fingerprint(workspace: Workspace) -> None:
    karpenter, helm = tool_named("karpenter-kwok"), tool_named("helm")
    before = binary_fingerprint(karpenter, workspace), binary_fingerprint(helm, workspace)
    sources = karpenter.own_sources(workspace.project_root)
    assert [path.name for path in sources if path.name == "main.go"]
    sources[0].write_text(f"{sources[0].read_text(encoding='utf-8')}\n", encoding="utf-8")
    assert binary_fingerprint(karpenter, workspace) != before[0]
    assert binary_fingerprint(helm, workspace) == before[1]


def test_fingerprint_changes_with_flags_and_not_with_other_modules(workspace: Workspace) -> None:
    helm = tool_named("helm")
    otherwise = replace(helm, stamps=())
    assert binary_fingerprint(otherwise, workspace) != binary_fingerprint(helm, workspace)
    jobset = CHARTS[0]
    before = chart_fingerprint(jobset, workspace)
    path = workspace.project_root / "tools" / "kubernetes" / "go.mod"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("helm.sh/helm/v4 v4", "helm.sh/helm/v4 v5"), encoding="utf-8")
    assert chart_fingerprint(jobset, workspace) == before


def test_second_build_waits_for_the_first(tmp_path: Path) -> None:
    waiting, order = threading.Event(), list[str]()

    def on_wait(holder: str) -> None:
        order.append(f"waits for {holder}")
        waiting.set()

    def second() -> None:
        with exclusive(tmp_path / "lock", on_wait):
            order.append("second runs")

    thread = threading.Thread(target=second)
    with exclusive(tmp_path / "lock", on_wait):
        thread.start()
        assert waiting.wait(timeout=10)
        order.append("first ends")
    thread.join(timeout=10)
    assert order == [f"waits for {os.getpid()}", "first ends", "second runs"]


def test_lock_is_released_after_a_failure(tmp_path: Path) -> None:
    def never(_: str) -> None:
        raise AssertionError("the lock must be free")

    with pytest.raises(RuntimeError), exclusive(tmp_path / "lock", never):
        raise RuntimeError
    with exclusive(tmp_path / "lock", never):
        assert (tmp_path / "lock").read_text(encoding="utf-8") == str(os.getpid())
