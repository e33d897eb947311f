"""Helm is told what a release says, and nothing secret."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.simulator.kubernetes_provider.helm import (
    Plan,
    install_arguments,
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
