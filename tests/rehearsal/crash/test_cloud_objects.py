"""Objects of two runs are comparable."""

from typing import Any

from rehearsal.crash.cloud_objects import comparable
from rehearsal.providers.cloud.state import CloudObject
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
