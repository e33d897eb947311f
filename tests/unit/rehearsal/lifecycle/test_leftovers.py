"""What a destroyed stack has left is found, whatever was kept on purpose apart."""

from typing import TYPE_CHECKING, cast

from holdfast.rehearsal.lifecycle.checks import kept_in_clouds, left_in_clouds, left_in_cluster
from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.state import CloudObject
from holdfast.simulator.kubernetes_client.errors import NoSuchKind
from tests.support.rehearsals import urn

if TYPE_CHECKING:
    from holdfast.simulator.kubernetes_client.client import KubeClient

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
