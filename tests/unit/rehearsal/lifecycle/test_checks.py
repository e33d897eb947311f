"""An act that shows what it should not is refused, with what it showed."""

from typing import TYPE_CHECKING, cast

import pytest

from holdfast.rehearsal.lifecycle.checks import (
    kept_in_clouds,
    left_in_clouds,
    left_in_cluster,
    names,
    protected,
    refuse_changes,
    refuse_leftovers,
    retained,
    some,
    unprotected,
)
from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.state import CloudObject
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.errors import NoSuchKind
from holdfast.simulator.pulumi.results import Step
from tests.support.builders.engine_records import a_checkpoint, a_resource, an_outcome, urn

if TYPE_CHECKING:
    from holdfast.simulator.kubernetes_client.client import KubeClient


def test_a_run_that_had_nothing_to_do_and_did_something_is_refused_with_what() -> None:
    step = Step(operation="update", urn=urn("network"))
    with pytest.raises(RehearsalError, match=r"^a second up changed update network \(aws:ec2/vpc:Vpc\)$"):
        refuse_changes("a second up", an_outcome(changes={"update": 1, "same": 9}, steps=(step,)))


def test_a_run_that_did_nothing_is_taken() -> None:
    refuse_changes("a second up", an_outcome(changes={"same": 9}))
    assert an_outcome(changes={"same": 9}).changed == 0, "what is the same is no change"


def test_what_is_left_is_named() -> None:
    with pytest.raises(RehearsalError, match="has left Node i-1"):
        refuse_leftovers(["Node i-1"])
    refuse_leftovers([])


def test_of_many_things_the_first_are_named() -> None:
    assert some([str(n) for n in range(7)]) == "0, 1, 2, 3, 4 and 2 more", "hundreds of lines tell less"
    assert some(["a"]) == "a", "one is named alone"


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


def test_an_object_of_the_stack_is_left_unless_it_was_kept() -> None:
    objects = [_BUCKET, _VPC, _BY_THE_CLOUD]
    assert left_in_clouds(objects, {urn("checkpoints")}) == ["aws:ec2/vpc:Vpc vpc-1"], "an orphan goes unseen"
    assert kept_in_clouds(objects, {urn("checkpoints"), urn("gone")}) == ["checkpoints"], (
        "what is kept is not what is there"
    )


def test_machines_and_releases_are_left_on_an_api_server() -> None:
    node: Json = {"kind": "Node", "metadata": {"name": "i-1"}}
    release: Json = {
        "kind": "Secret",
        "metadata": {"namespace": "karpenter", "labels": {"name": "karpenter"}},
    }
    found = left_in_cluster(cast("KubeClient", Server(node, release, release)))
    assert found == ["Node i-1", "release karpenter/karpenter"], "each once"
    assert left_in_cluster(cast("KubeClient", Server())) == [], "an empty cluster has nothing"


_STATE = a_checkpoint(
    [
        a_resource("cluster", type="aws:eks/cluster:Cluster", protect=True),
        a_resource("component", type="holdfast:index:EksCluster", id="", protect=True),
        a_resource("checkpoints", type="aws:s3/bucket:Bucket", protect=True, retainOnDelete=True),
        a_resource("network"),
    ]
)


def test_what_the_engine_refuses_to_delete_is_found() -> None:
    assert [one.name for one in protected(_STATE)] == ["cluster", "component", "checkpoints"], "by its state"
    assert protected(a_checkpoint([a_resource("network")])) == [], "a destroy would be expected to be refused"


def test_what_outlives_the_stack_is_found() -> None:
    assert [urn.rsplit("::", 1)[-1] for urn in retained(_STATE)] == ["checkpoints"], "it would be an orphan"


def test_components_are_not_named_beside_what_they_are_made_of() -> None:
    assert names(protected(_STATE)) == ["cluster", "checkpoints"], "a component is nothing in a cloud"


def test_the_one_field_is_changed_and_nothing_else() -> None:
    platform = {"cloud": "aws", "protected": True}
    config = {"aws:region": "eu-west-1", "holdfast:platform": platform}
    assert unprotected({"config": config}) == {
        "config": {"aws:region": "eu-west-1", "holdfast:platform": {"cloud": "aws", "protected": False}}
    }, "another stack would be destroyed than was made"
    assert platform["protected"], "the tracked settings were changed"
