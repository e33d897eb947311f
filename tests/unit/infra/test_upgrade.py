"""An upgrade from the last release replaces and deletes nothing that the changelog does not name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias, cast

import pytest

from holdfast.infra.release.build import project_version
from holdfast.scheduling.json import Json, JsonValue, mapping
from tests.support.release_state import ROOT, Step, recorded_state, registered, upgrade

State: TypeAlias = "dict[str, Json]"

#: A new ConfigMap stands beside the old one until the pods that use it are replaced (ADR 0029): nothing is lost with one.
HOLDS_NOTHING = "kubernetes:core/v1:ConfigMap"
STACKS = ("local", "aws-dev", "aws-prod", "azure-dev", "azure-prod", "gcp-dev", "gcp-prod")


@cache
def release() -> Json:
    return recorded_state()


def resources(stack: str) -> State:
    return {urn: mapping(each) for urn, each in mapping(mapping(release()["stacks"])[stack]).items()}


def changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text("utf-8")


def breaking_changes() -> str:
    """What the newest chapter of the changelog says that breaks."""
    newest = changelog().split("\n## ", 2)[1]
    return newest.partition("### Breaking changes")[2].partition("\n### ")[0]


def losses(before: Mapping[str, Json], after: Mapping[str, Json]) -> list[Step]:
    return [
        step
        for step in upgrade(before, after)
        if step.kind in {"replace", "delete"} and HOLDS_NOTHING not in step.urn
    ]


@pytest.mark.parametrize("stack", STACKS)
def test_an_upgrade_from_the_last_release_replaces_and_deletes_only_what_the_changelog_names(
    stack: str,
) -> None:
    today = registered(stack, str(mapping(release()["files"])[stack]))
    named = breaking_changes()
    lost = [str(step) for step in losses(resources(stack), today) if str(step).split(" (")[0] not in named]
    assert lost == [], (
        "a stack of the last release would lose these. Keep name, parent and inputs, or write an alias; if it must be, name each in "
        "`Breaking changes`, as `replace aws:eks/cluster:Cluster cluster-control-plane-eks`. Before the first release: make release-state"
    )


Change: TypeAlias = Callable[[State], None]


def without(name: str) -> Change:
    def change(state: State) -> None:
        del state[urn_of(state, name)]

    return change


def renamed(name: str) -> Change:
    def change(state: State) -> None:
        urn = urn_of(state, name)
        state[f"{urn}-2"] = state.pop(urn)

    return change


def with_input(name: str, value: JsonValue, *path: str) -> Change:
    def change(state: State) -> None:
        urn = urn_of(state, name)
        state[urn] = {**state[urn], "inputs": changed(state[urn]["inputs"], value, *path)}

    return change


def changed(inputs: JsonValue, value: JsonValue, field: str, *rest: str) -> Json:
    fields = cast("Json", inputs)
    return {**fields, field: changed(fields[field], value, *rest) if rest else value}


def urn_of(state: State, name: str) -> str:
    return next(urn for urn in state if urn.endswith(f"::{name}"))


EKS = "cluster-control-plane-eks"


@pytest.mark.parametrize(
    ("stack", "change", "steps"),
    [
        ("aws-dev", with_input(EKS, "1.99", "version"), []),
        ("aws-dev", with_input("checkpoints-bucket", {"owner": "me"}, "tags"), []),
        ("aws-dev", with_input(EKS, "arn:of-another-role", "roleArn"), ["replace", "roleArn"]),
        ("aws-prod", without("checkpoints-bucket"), ["delete", "checkpoints-bucket"]),
        ("aws-prod", renamed("checkpoints-key"), ["delete", "checkpoints-key"]),
        ("gcp-prod", with_input("cluster-control-plane-gke", "europe-west4", "location"), ["replace", "location"]),
        ("azure-prod", without("checkpoints"), ["delete", "StorageAccount"]),
        ("local", with_input("namespace-vision-namespace", "sight", "metadata", "name"), ["replace", "metadata.name"]),
    ],
)  # fmt: skip
def test_a_planted_loss_is_found_and_an_update_in_place_is_none(
    stack: str, change: Change, steps: list[str]
) -> None:
    before = resources(stack)
    after = dict(before)
    change(after)
    found = [str(step) for step in losses(before, after)]
    assert len(found) == bool(steps), f"exactly what was planted, not {found}"
    assert all(part in found[0] for part in steps), "it names the resource and what changes"


def test_the_recorded_state_is_that_of_the_last_release() -> None:
    version = project_version((ROOT / "pyproject.toml").read_text("utf-8"))
    released = [each for each in re.findall(r"(?m)^## (\d+\.\d+\.\d+)", changelog()) if each != version]
    assert release()["version"] in {version, *released[:1]}, "run `make release-state` after a release"
    assert set(mapping(release()["stacks"])) == set(STACKS), "each example stack is upgraded"
