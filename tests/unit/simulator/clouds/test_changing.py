"""The stand-in reads, compares, changes and removes objects as the cloud's own provider would."""

import json
from pathlib import Path

import pytest
from pulumi.runtime.proto import provider_pb2

from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.pulumi.values import UNKNOWN, Properties
from tests.support.provider_calls import Engine, Provider, refusal

_BUCKET = "aws:s3/bucket:Bucket"
_VPC = "aws:ec2/vpc:Vpc"
_SUBNET = "aws:ec2/subnet:Subnet"
_ROLE = "aws:iam/role:Role"
_GROUP = "aws:ec2/securityGroup:SecurityGroup"


def test_a_missing_object_reads_as_nothing_so_that_a_refresh_drops_it(aws: Provider) -> None:
    assert Engine(provider=aws, type=_BUCKET).read("gone", inputs={"bucket": "gone"})[0] == "", (
        "it must read as gone"
    )


def test_a_refresh_shows_what_was_changed_behind_the_engine(aws: Provider, state_file: Path) -> None:
    engine = Engine(provider=aws, type=_BUCKET)
    made, _ = engine.create({"bucket": "ckpt", "tags": {"a": "b"}})
    document = json.loads(state_file.read_text())
    document["objects"][0]["inputs"] |= {"tags": {"a": "changed"}, "forceDestroy": True}
    state_file.write_text(json.dumps(document))
    _, outputs, inputs = engine.read(made, inputs={"bucket": "ckpt", "tags": {"a": "b"}})
    assert inputs == {"bucket": "ckpt", "tags": {"a": "changed"}}, (
        "drift must show in the inputs the program set"
    )
    assert outputs["forceDestroy"] is True, "drift outside the program's inputs shows in the outputs"


def test_an_import_shows_all_inputs_of_an_object_that_was_there(aws: Provider, state_file: Path) -> None:
    with CloudState(state_file).changing() as inventory:
        inventory.put(
            CloudObject(type=_BUCKET, id="old", urn="", inputs={"bucket": "old", "forceDestroy": True})
        )
    _, _, inputs = Engine(provider=aws, type=_BUCKET).read("old")
    assert inputs == {"bucket": "old", "forceDestroy": True}, "an import compares these with the program's"


def test_an_update_keeps_id_and_computed_values(aws: Provider) -> None:
    engine = Engine(provider=aws, type=_VPC)
    vpc, before = engine.create({"cidrBlock": "10.0.0.0/16"})
    after = engine.update(vpc, {"cidrBlock": "10.0.0.0/16", "tags": {"a": "b"}})
    assert (after["arn"], after["tagsAll"]) == (before["arn"], {"a": "b"}), (
        "only what follows from the tags changes"
    )


def test_a_previewed_update_changes_nothing(aws: Provider) -> None:
    engine = Engine(provider=aws, type=_VPC)
    vpc, before = engine.create({"cidrBlock": "10.0.0.0/16"})
    planned = engine.update(vpc, {"cidrBlock": "10.0.0.0/16", "tags": {"a": UNKNOWN}}, preview=True)
    assert planned["tags"] == {"a": UNKNOWN}, "what is not known yet must stay so"
    assert planned["tagsAll"] is UNKNOWN, "what follows from the unknown is unknown"
    assert planned["ownerId"] == before["ownerId"], "what does not follow from it is known"
    assert engine.read(vpc)[1] == before, "a preview changed the object"


def test_an_update_of_a_missing_object_fails_in_the_clouds_words(aws: Provider) -> None:
    reason = refusal(lambda: Engine(provider=aws, type=_BUCKET).update("gone", {"bucket": "gone"}))
    assert reason == "ResourceNotFoundException: aws:s3/bucket:Bucket gone does not exist", reason


def test_deleting_what_is_gone_is_no_failure(aws: Provider) -> None:
    engine = Engine(provider=aws, type=_BUCKET)
    made, _ = engine.create({"bucket": "ckpt"})
    engine.delete(made)
    engine.delete(made)
    assert engine.read(made)[0] == "", "the bucket is still there"


def test_a_delete_the_cloud_refuses_leaves_the_object(aws: Provider) -> None:
    engine = Engine(provider=aws, type=_VPC)
    vpc, _ = engine.create({"cidrBlock": "10.0.0.0/16"})
    Engine(provider=aws, type=_SUBNET).create({"vpcId": vpc, "cidrBlock": "10.0.0.0/24"})
    assert refusal(lambda: engine.delete(vpc)).startswith("DependencyViolation"), (
        "a VPC with subnets cannot go"
    )
    assert engine.read(vpc)[0] == vpc, "a refused delete deleted"


@pytest.mark.parametrize(
    ("old", "new", "replaces", "deletes_first"),
    [
        ({"bucket": "a"}, {"bucket": "a", "tags": {}}, [], False),
        ({"bucket": "a"}, {"bucket": "b"}, ["bucket"], False),
        ({"bucket": "one-0123abc"}, {"bucket": UNKNOWN}, ["bucket"], False),
    ],
)
def test_a_bucket_is_replaced_only_for_its_name(
    aws: Provider, old: Properties, new: Properties, replaces: list[str], *, deletes_first: bool
) -> None:
    answer = Engine(provider=aws, type=_BUCKET).diff(old, new)
    assert (list(answer.replaces), answer.deleteBeforeReplace) == (replaces, deletes_first), (
        "the plan is wrong"
    )


@pytest.mark.parametrize(("name", "deletes_first"), [("mine", True), ("one-0123abc", False)])
def test_a_replacement_comes_after_the_delete_only_if_the_program_fixed_the_name(
    aws: Provider, name: str, *, deletes_first: bool
) -> None:
    old = {"name": name, "roleArn": "a", "vpcConfig": {"subnetIds": ["s"]}}
    answer = Engine(provider=aws, type="aws:eks/cluster:Cluster").diff(old, {**old, "roleArn": "b"})
    assert list(answer.replaces) == ["roleArn"], "a cluster's role cannot be changed in place"
    assert answer.deleteBeforeReplace is deletes_first, "two clusters of one name cannot exist together"
    assert answer.detailedDiff["roleArn"].kind == provider_pb2.PropertyDiff.UPDATE_REPLACE, (
        "the plan must say why"
    )
