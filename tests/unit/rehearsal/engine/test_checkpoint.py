"""Operations that a killed run did not see the end of."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.rehearsal.engine.checkpoint import (
    PendingOperation,
    adopt,
    find_adoptable,
    read_checkpoint,
)
from tests.support.builders.engine_records import (
    a_checkpoint,
    a_pending_create,
    a_resource,
    urn,
    write_checkpoint,
)


def test_an_interrupted_create_is_adopted_and_marks_its_predecessor() -> None:
    checkpoint = a_checkpoint([a_resource("bucket")], [a_pending_create("vpc")])
    deployment = adopt(checkpoint, {urn("vpc"): "vpc-1"}).deployment or {}
    assert [one["id"] for one in deployment["resources"]] == ["bucket-id", "vpc-1"]
    assert deployment["pending_operations"] == [], "the create would be asked about again"
    deployment = adopt(a_checkpoint([], [a_pending_create("vpc")]), {urn("vpc"): "vpc-1"}).deployment or {}
    (adopted,) = deployment["resources"]
    assert adopted["outputs"] == adopted["inputs"]
    checkpoint = a_checkpoint([], [a_pending_create("vpc")], manifest={"version": "v3"})
    deployment = adopt(checkpoint, {urn("vpc"): "vpc-1"}).deployment or {}
    assert deployment["manifest"] == {"version": "v3"}
    checkpoint = a_checkpoint([a_resource("vpc", id="old")], [a_pending_create("vpc")])
    deployment = adopt(checkpoint, {urn("vpc"): "new"}).deployment or {}
    assert [(one["id"], one.get("delete", False)) for one in deployment["resources"]] == [
        ("old", True),
        ("new", False),
    ]


def test_only_creates_with_an_effect_are_adopted() -> None:
    checkpoint = a_checkpoint([], [a_pending_create("vpc"), a_pending_create("bucket")])
    ids = find_adoptable(checkpoint, lambda operation: "b-1" if operation.urn == urn("bucket") else None)
    assert ids == {urn("bucket"): "b-1"}
    deleting = {"resource": a_resource("vpc"), "type": "deleting"}
    assert find_adoptable(a_checkpoint([], [deleting]), lambda _: "vpc-id") == {}


@given(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_every_pending_create_is_either_adopted_or_stays_pending(pending: set[str], made: set[str]) -> None:
    checkpoint = a_checkpoint([], [a_pending_create(name) for name in sorted(pending)])
    ids = find_adoptable(
        checkpoint, lambda operation: "id" if operation.urn in {urn(name) for name in made} else None
    )
    deployment = adopt(checkpoint, ids).deployment or {}
    adopted = {one["urn"] for one in deployment["resources"]}
    left = {one["resource"]["urn"] for one in deployment["pending_operations"]}
    assert adopted == {urn(name) for name in pending & made}
    assert left == {urn(name) for name in pending - made}


def test_state_is_read_from_the_file_of_the_backend(tmp_path: Path) -> None:
    file = tmp_path / "dev.json"
    write_checkpoint(file, a_checkpoint([a_resource("vpc")], [a_pending_create("bucket")]))
    read = read_checkpoint(file)
    assert [one.id for one in read.resources] == ["vpc-id"]
    assert [one.name for one in read.pending] == ["creating bucket"]
    read = read_checkpoint(tmp_path / "none.json")
    assert (read.resources, read.pending) == ((), ())


def test_the_type_of_a_nested_resource_is_its_own() -> None:
    nested = "urn:pulumi:dev::p::holdfast:index:Karpenter$kubernetes:helm.sh/v3:Release::crds"
    operation = PendingOperation(kind="creating", urn=nested, inputs={})
    assert operation.type == "kubernetes:helm.sh/v3:Release"
