"""What is pinned in two places is pinned at one version."""

import re
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.tools.catalog import tool_named

PROJECT = Path(__file__).parents[3]


@pytest.mark.parametrize("file", [".github/actions/stack/action.yaml", "examples/delivery/gitlab-ci.yaml"])
def test_pull_requests_are_previewed_by_the_engine_that_rehearsals_run(file: str) -> None:
    workflow = (PROJECT / file).read_text(encoding="utf-8")
    pinned = re.findall(r"(?:pulumi-version:|PULUMI_VERSION:) (\S+)", workflow)
    assert pinned == [str(tool_named("pulumi").pin(PROJECT))], (
        "a plan by another engine than the rehearsed one is another plan"
    )


@pytest.mark.parametrize(
    "derived",
    [
        "infra/requirements.txt",
        "components/pulumi_holdfast/controller/requirements.lock",
        "policies/requirements.txt",
    ],
)
def test_derived_lock_pins_the_versions_of_the_project_lock(derived: str) -> None:
    whole, part = (
        dict(re.findall(r"^([\w.-]+)==(\S+)", (PROJECT / name).read_text(), re.MULTILINE))
        for name in ("requirements.lock", derived)
    )
    assert part
    assert {name: version for name, version in part.items() if whole.get(name) != version} == {}
