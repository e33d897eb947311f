"""An upgrade from the last release replaces and deletes nothing that the changelog does not name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias, TypedDict, Unpack, cast

import pulumi
import pytest

from holdfast.scheduling.json import Json, JsonValue, mapping
from tests.support.fakes.pulumi_engine import record
from tests.support.release_state import (
    ROOT,
    Step,
    kept_of,
    project_version,
    recorded_state,
    registered,
    upgrade,
)

State: TypeAlias = dict[str, Json]

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
        "`Breaking changes`, as `replace aws:eks/cluster:Cluster cluster-control-plane-eks`. Before the first release: python -m tests.support.release_state"
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


def moved_with_alias(name: str) -> Change:
    def change(state: State) -> None:
        urn = urn_of(state, name)
        state[f"{urn}-2"] = {**state.pop(urn), "aliases": ["urn:of-another", urn]}

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
        ("aws-prod", moved_with_alias("checkpoints-key"), []),
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


class Store(pulumi.ComponentResource):
    """A component with a bucket that has its name, and a policy below the bucket's own component."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None, kind: str = "Store") -> None:
        super().__init__(f"tests:index:{kind}", name, None, opts)
        inner = pulumi.ComponentResource("tests:index:Inner", f"{name}-inner", None, child_of(self))
        pulumi.CustomResource("aws:s3/bucket:Bucket", f"{name}-inner-bucket", {}, child_of(inner))
        pulumi.CustomResource("aws:kms/key:Key", "key", {}, child_of(inner))


def child_of(parent: pulumi.Resource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(parent=parent)


def known_as(**former: Unpack[Former]) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(aliases=[pulumi.Alias(**former)])


class Former(TypedDict, total=False):
    name: str
    type_: str
    stack: str
    project: str


URN = "urn:pulumi:local::holdfast::tests:index:Store::store"
#: How a component may move, and the resources below it that are not found again.
MOVES: Mapping[str, tuple[Callable[[], object], set[str]]] = {
    "renamed": (lambda: Store("shop"), {"bucket"}),
    "renamed, with its name": (lambda: Store("shop", known_as(name="store")), set()),
    "renamed, with its URN": (lambda: Store("shop", pulumi.ResourceOptions(aliases=[URN])), set()),
    "of another type": (lambda: Store("store", known_as(type_="tests:index:Store"), "Shop"), set()),
    "of another type without an alias": (lambda: Store("store", kind="Shop"), {"bucket", "key"}),
    "both": (lambda: Store("shop", known_as(name="store", type_="tests:index:Store"), "Shop"), set()),
    "with a wrong name": (lambda: Store("shop", known_as(name="stor")), {"bucket"}),
}


@pytest.mark.parametrize("move", MOVES)
def test_resources_below_a_moved_component_are_kept_if_its_alias_says_what_it_was(move: str) -> None:
    build, lost = MOVES[move]
    before, after = stored(lambda: Store("store")), stored(build)
    steps = [(step.kind, step.urn.rpartition("::")[2].rpartition("-")[2]) for step in upgrade(before, after)]
    assert {*steps} == {(kind, name) for kind in ("create", "delete") for name in lost}, "as the engine does"


def stored(build: Callable[[], object]) -> Mapping[str, Json]:
    return {each.urn: kept_of(each) for each in record(build) if each.custom}


def test_the_recorded_state_is_that_of_the_last_release() -> None:
    version = project_version()
    released = [each for each in re.findall(r"(?m)^## (\d+\.\d+\.\d+)", changelog()) if each != version]
    assert release()["version"] in {version, *released[:1]}, (
        "run `python -m tests.support.release_state` after a release"
    )
    assert set(mapping(release()["stacks"])) == set(STACKS), "each example stack is upgraded"
