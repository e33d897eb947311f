"""A stamp changes with everything that decides a program, and with nothing else."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.catalog import tool_named
from holdfast.simulator.tools.charts import CHARTS, chart_fingerprint
from holdfast.simulator.tools.stamps import binary_fingerprint, exclusive, fingerprint
from tests.support.tool_workspace import checkout

parts = st.lists(st.text(), min_size=1)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return checkout(tmp_path)


@given(parts, parts)
def test_two_lists_of_parts_have_one_fingerprint_only_if_they_are_equal(
    one: list[str], two: list[str]
) -> None:
    assert (fingerprint(*one) == fingerprint(*two)) == (one == two), "where a part ends counts too"


@pytest.mark.parametrize("file", ["go.mod", "go.sum"])
def test_a_pin_or_a_checksum_that_changes_makes_the_program_old(workspace: Workspace, file: str) -> None:
    helm, pulumi = tool_named("helm"), tool_named("pulumi")
    before = binary_fingerprint(helm, workspace), binary_fingerprint(pulumi, workspace)
    path = workspace.project_root / "tools" / "kubernetes" / file
    path.write_text(f"{path.read_text(encoding='utf-8')}\n", encoding="utf-8")
    assert binary_fingerprint(helm, workspace) != before[0], f"{file} decides what is compiled"
    assert binary_fingerprint(pulumi, workspace) == before[1], "another module's program stays"


def test_a_source_of_ours_that_changes_makes_its_program_old(workspace: Workspace) -> None:
    karpenter, helm = tool_named("karpenter-kwok"), tool_named("helm")
    before = binary_fingerprint(karpenter, workspace), binary_fingerprint(helm, workspace)
    sources = karpenter.own_sources(workspace.project_root)
    assert [path.name for path in sources if path.name == "main.go"], "the program is one of this project's"
    sources[0].write_text(f"{sources[0].read_text(encoding='utf-8')}\n", encoding="utf-8")
    assert binary_fingerprint(karpenter, workspace) != before[0], "its sources decide it as its pins do"
    assert binary_fingerprint(helm, workspace) == before[1], "programs of upstream's stay"


def test_another_way_to_link_makes_the_program_old(workspace: Workspace) -> None:
    helm = tool_named("helm")
    otherwise = replace(helm, stamps=())
    assert binary_fingerprint(otherwise, workspace) != binary_fingerprint(helm, workspace), "the flags count"


def test_a_chart_follows_its_module_alone(workspace: Workspace) -> None:
    jobset = CHARTS[0]
    before = chart_fingerprint(jobset, workspace)
    path = workspace.project_root / "tools" / "kubernetes" / "go.mod"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("helm.sh/helm/v4 v4", "helm.sh/helm/v4 v5"), encoding="utf-8")
    assert chart_fingerprint(jobset, workspace) == before, "helm's pin says nothing about JobSet's chart"


def test_the_second_build_waits_and_learns_whom_for(tmp_path: Path) -> None:
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
        assert waiting.wait(timeout=10), "the second must notice that the first holds the lock"
        order.append("first ends")
    thread.join(timeout=10)
    assert order == [f"waits for {os.getpid()}", "first ends", "second runs"], "one after the other"


def test_the_lock_is_free_again_after_a_failure(tmp_path: Path) -> None:
    def never(_: str) -> None:
        raise AssertionError("nobody holds the lock any more")

    with pytest.raises(RuntimeError), exclusive(tmp_path / "lock", never):
        raise RuntimeError
    with exclusive(tmp_path / "lock", never):
        assert (tmp_path / "lock").read_text(encoding="utf-8") == str(os.getpid()), "the holder names itself"
