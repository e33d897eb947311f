"""The selection of resources after which a run is killed, and the comparison of cloud objects."""

from typing import Any

from pulumi_holdfast.rehearsal.clouds.state import CloudObject
from pulumi_holdfast.rehearsal.engine.checkpoint import RecordedResource
from tests.soak.crash.cloud_objects import comparable
from tests.soak.crash.selection import every
from tests.support.builders.engine_records import urn


def test_only_resources_of_a_provider_are_selected() -> None:
    made = RecordedResource(urn=urn("vpc"), id="vpc-1")
    component = RecordedResource(urn=urn("network", "holdfast:index:Network"), id="")
    provider = RecordedResource(urn=urn("default", "pulumi:providers:aws"), id="0000")
    only_read = RecordedResource(urn=urn("role"), id="role", external=True)
    assert every([component, provider, made, only_read]) == (made.urn,)


_BUCKET = "aws:s3/bucket:Bucket"


def _bucket(name: str = "ckpt-1a2b3c4", **inputs: Any) -> CloudObject:
    return CloudObject(
        type=_BUCKET,
        id=name,
        urn=urn("ckpt", _BUCKET),
        digest="d",
        inputs={"bucket": name, **inputs},
        computed={"arn": f"arn:aws:s3:::{name}"},
    )


def _queue(bucket: str) -> CloudObject:
    return CloudObject(
        type="aws:sqs/queue:Queue", id="q", urn=urn("q"), digest="d", inputs={"policy": f"for {bucket}/*"}
    )


def test_objects_differ_in_content_but_not_in_random_names_or_order() -> None:
    one = comparable([_bucket("ckpt-1a2b3c4"), _queue("ckpt-1a2b3c4")])
    other = comparable([_bucket("ckpt-ffffff0"), _queue("ckpt-ffffff0")])
    assert one == other
    assert comparable([_bucket(tags={"a": "b"})]) != comparable([_bucket(tags={"a": "c"})])
    assert comparable([_bucket("mine")]) != comparable([_bucket("yours")])
    twice = comparable([_bucket("ckpt-1a2b3c4"), _bucket("ckpt-ffffff0")])
    assert len(twice) == 2


def _assignment(name: str, *, principal: str = "trainer") -> CloudObject:
    kind = "azure-native:authorization:RoleAssignment"
    return CloudObject(
        type=kind,
        id=f"/subscriptions/s/providers/Microsoft.Authorization/roleAssignments/{name}",
        urn=urn("access", kind),
        digest="d",
        inputs={"roleAssignmentName": name, "principalId": principal},
    )


def test_a_guid_in_the_id_of_its_object_is_equal() -> None:
    names = ("8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d11", "8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d22")
    one, other = (comparable([_assignment(name)]) for name in names)
    assert one == other


def test_a_guid_that_an_object_only_references_differs() -> None:
    name = "8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d11"
    one = comparable([_assignment(name, principal="8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d33")])
    other = comparable([_assignment(name, principal="8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d44")])
    assert one != other


def _held(name: str, within: str) -> CloudObject:
    kind = "azure-native:storage:BlobContainer"
    return CloudObject(
        type=kind, id=f"{within}/{name}", urn=urn(name, kind), digest="d", inputs={"accountName": within}
    )


def test_the_order_of_creation_is_ignored() -> None:
    account, parts = "ckpt1a2b3c4d", ("ckpt-a", "ckpt-b")
    one = comparable([_bucket(account), *(_held(part, account) for part in parts)])
    other = comparable([_bucket(account), *(_held(part, account) for part in reversed(parts))])
    assert one == other
