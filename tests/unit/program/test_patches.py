"""Patches of Kubernetes objects are applied to the objects that they change."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.patches import with_patches
from pulumi_holdfast.program.resources import StackResource, Value, at
from rules.verdicts import RULE as VERDICTS
from tests.support.builders.stack_resources import resource
from tests.support.fakes.policy_engine import Pack
from tests.unit.policies.strangers.aws import ON_DEMAND, SPOT, patched
from tests.unit.policies.strangers.programs import one_of, training

QUOTA = "kubernetes:core/v1:ResourceQuota"


def quota(pods: Value, kind: str = QUOTA, **metadata: Value) -> StackResource:
    spec: Value = {} if pods is None else {"hard": {"pods": pods}}
    return resource(
        kind, "quota", {"metadata": {"name": "q", "namespace": "vision", **metadata}, "spec": spec}
    )


def patch(pods: Value, **metadata: Value) -> StackResource:
    return quota(pods, f"{QUOTA}Patch", **metadata)


@pytest.mark.parametrize(
    ("before", "change", "pods", "is_open"),
    [
        (quota("8"), patch("8"), "8", False),
        (quota(None), patch("8"), "8", False),
        (quota("8"), patch("4"), UNKNOWN, True),
        (quota(UNKNOWN), patch("4"), UNKNOWN, True),
        (quota("8"), patch(None, labels={"team": "vision"}, resourceVersion="2"), "8", False),
        (quota(None), patch("8", name=UNKNOWN), UNKNOWN, True),
        (quota("8", labels=UNKNOWN), patch("8", labels={"team": "vision"}), "8", True),
    ],
    ids=["alike", "added", "differs", "unknown before", "a label", "of an unknown name", "unknown labels"],
)
def test_patch_of_an_object_decides_only_what_the_object_leaves_open(
    before: StackResource, change: StackResource, pods: Value, is_open: bool
) -> None:
    (found,) = with_patches([change, before])
    assert at(found.props, "spec", "hard", "pods") == pods, "a value that both set differently is not known"
    assert found.patched_by == (("quota",) if is_open else ()), "and the report names the patch"
    assert at(before.props, "metadata") == before.props["metadata"], "the resource itself is not changed"


OTHERS: Mapping[str, StackResource] = {
    "name": quota("8", name="other"),
    "name that Pulumi gives": quota("8", name=None),
    "namespace": quota("8", namespace="audio"),
    "kind": replace(quota("8"), type="kubernetes:core/v1:LimitRange"),
    "group": replace(quota("8"), type="kubernetes:example.com/v1:ResourceQuota"),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_patch_changes_no_object_of_another(other: StackResource) -> None:
    assert with_patches([other, patch("4")]) == (other, patch("4")), (
        "the patch is of another program's object"
    )


def test_patch_named_by_an_output_changes_the_object_that_it_is_made_from() -> None:
    first, second = (replace(quota("8", name=None), urn=f"urn:pulumi:s::p::{QUOTA}::{name}") for name in "ab")
    change = replace(patch("4", name=UNKNOWN), refers_to={"metadata": (second.urn,)})
    found = with_patches([first, second, change])
    assert [each.patched_by for each in found] == [(), ("quota",)], "the name is an output of the second"


def test_report_names_the_patch_that_keeps_a_ladder_from_being_judged() -> None:
    to_spot: Value = {"requirements": [one_of("karpenter.sh/capacity-type", "spot")]}
    program = [*training(), SPOT, ON_DEMAND, patched("on-demand", template=to_spot)]
    found = [each for each in Pack().violations(program) if each.rule == VERDICTS.name]
    assert [each.message.splitlines()[0] for each in found] == ["namespace 'vision': not judged"], str(found)
    assert "'on-demand-patch' changes it" in found[0].message, "the engine sends the patch as a resource"
    assert "the update will know it" not in found[0].message, "an update shows no more than the preview"
