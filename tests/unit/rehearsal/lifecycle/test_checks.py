"""What the steps of a lifecycle must show, and what protects a stack."""

from typing import cast

import pytest

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.api_server import NoSuchKind
from pulumi_holdfast.rehearsal.clouds.state import CloudObject
from pulumi_holdfast.rehearsal.engine.events import EngineStep
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.lifecycle.checks import (
    allowed_foreign_writes,
    first_few,
    left_in_clouds,
    left_in_cluster,
    names,
    protected,
    require_no_changes,
    require_nothing_left,
    retained,
    retained_in_clouds,
    unprotected,
)
from tests.support.builders.engine_records import a_checkpoint, a_resource, an_outcome, urn


def test_an_unexpected_change_fails_the_step_and_is_named() -> None:
    step = EngineStep(operation="update", urn=urn("network"))
    with pytest.raises(
        RehearsalError, match=r"^a second up changed update network \(aws:ec2/vpc:Vpc\); give"
    ):
        require_no_changes("a second up", an_outcome(changes={"update": 1, "same": 9}, steps=(step,)))
    require_no_changes("a second up", an_outcome(changes={"same": 9}))
    assert an_outcome(changes={"same": 9}).changed == 0


def test_leftovers_fail_the_destroy_and_are_named() -> None:
    with pytest.raises(RehearsalError, match="left Node i-1"):
        require_nothing_left(["Node i-1"])
    require_nothing_left([])


def test_a_long_list_is_shortened_to_its_first_items() -> None:
    assert first_few([str(n) for n in range(7)]) == "0, 1, 2, 3, 4 and 2 more"
    assert first_few(["a"]) == "a"


_BUCKET = CloudObject(type="aws:s3/bucket:Bucket", id="ckpt-1", urn=urn("checkpoints"), inputs={})
_VPC = CloudObject(type="aws:ec2/vpc:Vpc", id="vpc-1", urn=urn("network"), inputs={})
_BY_THE_CLOUD = CloudObject(type="aws:eks/accessEntry:AccessEntry", id="a", urn="", inputs={})


class Server:
    """An API server without Karpenter's kinds."""

    def __init__(self, *objects: Json) -> None:
        self.objects = objects

    def list(self, api_version: str, kind: str, *, label_selector: str | None = None) -> list[Json]:
        if api_version.startswith("karpenter"):
            raise NoSuchKind(api_version, kind)
        return [one for one in self.objects if one["kind"] == kind]


def test_objects_of_the_stack_are_leftovers_unless_retained() -> None:
    objects = [_BUCKET, _VPC, _BY_THE_CLOUD]
    assert left_in_clouds(objects, {urn("checkpoints")}) == ["aws:ec2/vpc:Vpc vpc-1"]
    assert retained_in_clouds(objects, {urn("checkpoints"), urn("gone")}) == ["checkpoints"]


@pytest.mark.parametrize(("answer", "allowed"), [("fallback-controller-writes", []), (None, ["Node i-1"])])
def test_a_write_that_the_policy_allows_is_reported(answer: str | None, allowed: list[str]) -> None:
    class Controller:
        def merge_patch(self, *_: object, **__: object) -> None:
            if answer is not None:
                raise ApiError(403, "Forbidden", answer)

    node: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "i-1"}}
    assert allowed_foreign_writes(cast("KubeClient", Controller()), [node]) == allowed


def test_nodes_and_releases_on_an_api_server_are_leftovers() -> None:
    node: Json = {"kind": "Node", "metadata": {"name": "i-1"}}
    release: Json = {
        "kind": "Secret",
        "metadata": {"namespace": "karpenter", "labels": {"name": "karpenter"}},
    }
    found = left_in_cluster(cast("KubeClient", Server(node, release, release)))
    assert found == ["Node i-1", "release karpenter/karpenter"]
    assert left_in_cluster(cast("KubeClient", Server())) == []


_STATE = a_checkpoint(
    [
        a_resource("cluster", type="aws:eks/cluster:Cluster", protect=True),
        a_resource("component", type="holdfast:index:EksCluster", id="", protect=True),
        a_resource("checkpoints", type="aws:s3/bucket:Bucket", protect=True, retainOnDelete=True),
        a_resource("network"),
    ]
)


def test_protected_and_retained_resources_are_read_from_the_state() -> None:
    assert [one.name for one in protected(_STATE)] == ["cluster", "component", "checkpoints"]
    assert protected(a_checkpoint([a_resource("network")])) == []
    assert [urn.rsplit("::", 1)[-1] for urn in retained(_STATE)] == ["checkpoints"]
    assert names(protected(_STATE)) == ["cluster", "checkpoints"]


def test_unprotected_changes_only_the_protected_field() -> None:
    platform = {"cloud": "aws", "protected": True}
    config = {"aws:region": "eu-west-1", "holdfast:platform": platform}
    assert unprotected({"config": config}) == {
        "config": {"aws:region": "eu-west-1", "holdfast:platform": {"cloud": "aws", "protected": False}}
    }
    assert platform["protected"]
