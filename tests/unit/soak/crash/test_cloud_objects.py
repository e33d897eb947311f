"""Objects of two runs are comparable."""

from typing import Any

from holdfast.simulator.clouds.state import CloudObject
from tests.soak.crash.cloud_objects import comparable
from tests.support.rehearsals import urn

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


def test_names_drawn_at_random_make_no_difference_here_or_where_they_are_used() -> None:
    one = comparable([_bucket("ckpt-1a2b3c4"), _queue("ckpt-1a2b3c4")])
    other = comparable([_bucket("ckpt-ffffff0"), _queue("ckpt-ffffff0")])
    assert one == other, "every run draws other names"


def test_another_content_makes_a_difference() -> None:
    assert comparable([_bucket(tags={"a": "b"})]) != comparable([_bucket(tags={"a": "c"})]), (
        "a change went unseen"
    )


def test_a_name_that_was_given_makes_a_difference() -> None:
    assert comparable([_bucket("mine")]) != comparable([_bucket("yours")]), "these names were not drawn"


def test_a_duplicate_is_a_line_of_its_own() -> None:
    twice = comparable([_bucket("ckpt-1a2b3c4"), _bucket("ckpt-ffffff0")])
    assert len(twice) == 2, "an orphan beside its successor would go unseen"


def _assignment(name: str, *, principal: str = "somebody") -> CloudObject:
    kind = "azure-native:authorization:RoleAssignment"
    return CloudObject(
        type=kind,
        id=f"/subscriptions/s/providers/Microsoft.Authorization/roleAssignments/{name}",
        urn=urn("access", kind),
        digest="d",
        inputs={"roleAssignmentName": name, "principalId": principal},
    )


def test_a_guid_that_an_object_goes_by_makes_no_difference() -> None:
    names = ("8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d11", "8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d22")
    one, other = (comparable([_assignment(name)]) for name in names)
    assert one == other, "it is made of the name of a storage account, which every run draws anew"


def test_a_guid_that_an_object_only_holds_makes_a_difference() -> None:
    name = "8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d11"
    one = comparable([_assignment(name, principal="8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d33")])
    other = comparable([_assignment(name, principal="8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d44")])
    assert one != other, "who is given a role would go unseen"


def _held(name: str, within: str) -> CloudObject:
    kind = "azure-native:storage:BlobContainer"
    return CloudObject(
        type=kind, id=f"{within}/{name}", urn=urn(name, kind), digest="d", inputs={"accountName": within}
    )


def test_the_order_in_which_things_were_made_makes_no_difference() -> None:
    account, parts = "ckpt1a2b3c4d", ("ckpt-a", "ckpt-b")
    one = comparable([_bucket(account), *(_held(part, account) for part in parts)])
    other = comparable([_bucket(account), *(_held(part, account) for part in reversed(parts))])
    assert one == other, "what is in a store and called after it may be made in any order"
