"""A protected stack is known by its state, and unprotected as its owner would do it."""

from holdfast.rehearsal.lifecycle.checks import names, protected, retained, unprotected
from tests.support.rehearsals import a_checkpoint, a_resource

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
