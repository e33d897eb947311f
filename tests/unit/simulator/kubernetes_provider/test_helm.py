"""Helm is told what a release says, and nothing secret."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.helm import (
    Chart,
    ChartMirror,
    Plan,
    Revision,
    install_arguments,
    last_complete,
    template_arguments,
    uninstall_arguments,
    upgrade_arguments,
)

PLAN = Plan(name="jobset", namespace="jobset-system", chart=Path("charts/jobset"), timeout=300)


def test_an_install_waits_as_long_as_the_release_says() -> None:
    arguments = install_arguments(PLAN)
    assert arguments[:3] == ["install", "jobset", "charts/jobset"], "another chart, or release, is installed"
    assert "--wait=legacy" in arguments, "the next resource would meet an operator that is not up"
    assert arguments[arguments.index("--timeout") + 1] == "300s", "helm's default would count"


def test_values_come_on_standard_input() -> None:
    for arguments in (install_arguments(PLAN), upgrade_arguments(PLAN)):
        assert arguments[arguments.index("--values") + 1] == "-", "secrets would show in the process list"


@pytest.mark.parametrize("arguments", [install_arguments, upgrade_arguments, uninstall_arguments])
def test_a_release_that_skips_waits_is_not_waited_for(arguments: Callable[[Plan], list[str]]) -> None:
    assert "--wait=legacy" not in arguments(replace(PLAN, skip_await=True)), "skipAwait is passed over"
    assert "--wait=legacy" in arguments(replace(PLAN, skip_await=True, atomic=True)), "atomic has to wait"


@pytest.mark.parametrize("arguments", [install_arguments, upgrade_arguments])
def test_objects_are_patched_as_by_the_plugins_helm(arguments: Callable[[Plan], list[str]]) -> None:
    assert "--server-side=false" in arguments(PLAN), (
        "a controller's own changes would conflict with an upgrade"
    )


def test_the_namespace_is_made_only_at_first() -> None:
    plan = replace(PLAN, create_namespace=True, label="a=b")
    assert "--create-namespace" in install_arguments(plan), "the install has nowhere to go"
    assert "--create-namespace" not in upgrade_arguments(plan), "helm refuses it in an upgrade"


def test_crds_are_rendered_unless_skipped() -> None:
    shown = template_arguments(PLAN, kube_version="v1.36.3")
    hidden = template_arguments(replace(PLAN, skip_crds=True), kube_version="v1.36.3")
    assert ("--include-crds" in shown, "--include-crds" in hidden) == (True, False), "skipCrds is passed over"


def test_an_uninstall_of_nothing_is_no_failure() -> None:
    assert "--ignore-not-found" in uninstall_arguments(PLAN), "a second destroy would fail"


OCI = "oci://registry.example/charts/jobset"


@pytest.fixture
def mirror(tmp_path: Path) -> ChartMirror:
    """A mirror with one chart, jobset 0.12.0."""
    write_chart(tmp_path / "charts" / "jobset", version="0.12.0")
    return ChartMirror(tmp_path / "charts", base=tmp_path)


def write_chart(path: Path, *, version: str) -> None:
    path.mkdir(parents=True)
    (path / "Chart.yaml").write_text(f"apiVersion: v2\nname: {path.name}\nversion: {version}\n")


@pytest.mark.parametrize(
    ("chart", "version", "repo"),
    [
        (OCI, "0.12.0", None),
        (OCI, "v0.12.0", None),
        (OCI, None, None),
        ("jobset", "0.12.0", "https://charts.example"),
        ("charts/jobset", None, None),
    ],
)
def test_every_way_to_name_a_chart_leads_to_the_mirrored_one(
    mirror: ChartMirror, chart: str, version: str | None, repo: str | None
) -> None:
    found = mirror.find(chart, version=version, repo=repo)
    assert (found.name, found.version) == ("jobset", "0.12.0"), "another chart would be installed"


def test_another_version_is_refused_with_both_named(mirror: ChartMirror) -> None:
    with pytest.raises(RehearsalError, match=r"version 0\.11\.0 is asked for.*is version 0\.12\.0"):
        mirror.find(OCI, version="0.11.0", repo=None)


@pytest.mark.parametrize(
    ("chart", "repo"), [("oci://x/kueue", None), ("kueue", "https://x"), ("kueue", None)]
)
def test_a_chart_that_is_nowhere_is_refused_with_those_that_are_there(
    mirror: ChartMirror, chart: str, repo: str | None
) -> None:
    with pytest.raises(RehearsalError, match="jobset"):
        mirror.find(chart, version=None, repo=repo)


def test_a_directory_without_a_chart_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=r"Chart\.yaml"):
        Chart.at(tmp_path)


def test_an_edited_chart_has_another_digest(mirror: ChartMirror) -> None:
    chart = mirror.find(OCI, version=None, repo=None)
    before = chart.digest()
    (chart.path / "templates").mkdir()
    (chart.path / "templates" / "a.yaml").write_text("kind: ConfigMap\n")
    assert chart.digest() != before, "an edited chart would never be upgraded"
    (chart.path / "templates" / "a.yaml").rename(chart.path / "a.yaml")
    assert chart.digest() != before, "a moved file changes what is rendered"


@pytest.mark.parametrize(
    ("statuses", "whole"),
    [
        ([], None),
        (["pending-install"], None),
        (["deployed", "pending-upgrade"], 1),
        (["superseded", "deployed", "pending-rollback"], 2),
        (["failed", "pending-upgrade"], 1),
    ],
)
def test_interrupted_revisions_are_passed_over(statuses: list[str], whole: int | None) -> None:
    history = [Revision(number=at, status=status) for at, status in enumerate(statuses, start=1)]
    assert last_complete(history) == whole, "the release would be brought to a state it never had"
