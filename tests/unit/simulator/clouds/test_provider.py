"""The stand-in plans, checks and makes objects as the cloud's own provider would."""

from pathlib import Path

import pytest
from google.protobuf import empty_pb2

from holdfast.simulator.clouds import CloudProvider
from holdfast.simulator.clouds.schema import Schema
from holdfast.simulator.clouds.state import CloudState
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.plugin import serve
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret
from tests.support.provider_calls import Engine, Provider, calling, refusal

_BUCKET = "aws:s3/bucket:Bucket"
_VPC = "aws:ec2/vpc:Vpc"
_SUBNET = "aws:ec2/subnet:Subnet"
_ROLE = "aws:iam/role:Role"
_GROUP = "aws:ec2/securityGroup:SecurityGroup"


def test_the_version_is_that_of_the_installed_sdk(aws: Provider) -> None:
    info = aws.GetPluginInfo(empty_pb2.Empty())
    assert info.version == Schema.for_package("aws").version, "the engine would look for another plugin"


def test_a_preview_knows_the_inputs_and_not_what_the_cloud_adds(aws: Provider, state_file: Path) -> None:
    planned = Engine(provider=aws, type=_BUCKET).plan({"bucket": "ckpt", "forceDestroy": True})
    assert (planned["bucket"], planned["forceDestroy"]) == ("ckpt", True), "known inputs were lost"
    assert planned["arn"] is UNKNOWN, "an ARN is not known before the bucket exists"
    assert CloudState(state_file).read().all() == [], "a preview made something"


def test_everything_unknown_on_preview_that_is_always_set_is_there_after_a_create(aws: Provider) -> None:
    engine = Engine(provider=aws, type=_VPC)
    planned = engine.plan({"cidrBlock": "10.0.0.0/16"})
    _, made = engine.create({"cidrBlock": "10.0.0.0/16"})
    assert UNKNOWN not in made.values(), "an output stayed unknown"
    assert set(made) == set(planned), "a preview promised other outputs than the create gave"


def test_computed_outputs_have_the_types_and_shapes_of_the_cloud(aws: Provider) -> None:
    vpc, outputs = Engine(provider=aws, type=_VPC).create({"cidrBlock": "10.0.0.0/16"})
    assert vpc.startswith("vpc-"), "an EC2 id begins with its kind"
    assert len(vpc) == len("vpc-") + 17, "an EC2 id ends in 17 hexadecimal digits"
    assert outputs["arn"] == f"arn:aws:ec2:us-east-1:123456789012:vpc/{vpc}", "the ARN is not well shaped"
    assert outputs["enableDnsHostnames"] is False, "a boolean output must be one"


def test_a_name_is_made_up_from_the_seed_and_kept_on_update(aws: Provider) -> None:
    engine = Engine(provider=aws, type=_BUCKET, name="ckpt")
    first = engine.check({}, seed=b"one")
    assert str(first["bucket"]).startswith("ckpt-"), "the logical name is what people recognise"
    assert len(str(first["bucket"])) == len("ckpt-") + 7, "the real provider appends 7 digits"
    assert engine.check({}, old=first, seed=b"two") == first, "an update would rename the bucket"
    assert engine.check({}, seed=b"two") != first, "a replacement would clash with its predecessor"


def test_a_made_up_name_too_long_for_the_cloud_is_refused_with_the_mend(aws: Provider) -> None:
    engine = Engine(provider=aws, type=_ROLE, name="r" * 60)
    reason = refusal(lambda: engine.check({"assumeRolePolicy": "{}"}))
    assert "has 68 characters of at most 64; shorten the resource's name or set 'name'" in reason, reason


def test_an_unknown_type_is_refused_by_name(aws: Provider) -> None:
    reason = refusal(lambda: Engine(provider=aws, type="aws:s3/bukket:Bukket").check({}))
    assert "has no type 'aws:s3/bukket:Bukket'" in reason, reason


def test_a_missing_property_is_refused_at_the_check(aws: Provider) -> None:
    assert list(Engine(provider=aws, type=_SUBNET).refusals({})) == ["vpcId"], (
        "the mistake is found before any create"
    )


def test_a_name_that_is_taken_is_refused_in_the_clouds_words(aws: Provider) -> None:
    Engine(provider=aws, type=_BUCKET).create({"bucket": "ckpt"})
    second = Engine(provider=aws, type=_BUCKET, name="two")
    reason = refusal(lambda: second.create({"bucket": "ckpt"}))
    assert reason == "BucketAlreadyExists: The requested bucket name is not available: ckpt", reason


def test_one_name_serves_two_objects_in_different_scopes(aws: Provider) -> None:
    ids = {
        Engine(provider=aws, type=_GROUP, name=vpc).create({"name": "nodes", "vpcId": vpc})[0]
        for vpc in ("vpc-1", "vpc-2")
    }
    assert len(ids) == 2, "a security group's name is unique in its VPC only"


def test_an_object_made_again_has_another_id(aws: Provider) -> None:
    engine = Engine(provider=aws, type=_VPC)
    first, _ = engine.create({"cidrBlock": "10.0.0.0/16"})
    engine.delete(first)
    second, _ = engine.create({"cidrBlock": "10.0.0.0/16"})
    assert first != second, "a stale reference to the first would seem to work"


def test_a_secret_input_comes_back_secret_and_is_kept_in_plain(aws: Provider, state_file: Path) -> None:
    _, outputs = Engine(provider=aws, type=_BUCKET).create({"bucket": "b", "policy": Secret("{}")})
    assert outputs["policy"] == Secret("{}"), "the engine would store it in plain text"
    assert CloudState(state_file).read().all()[0].inputs["policy"] == "{}", "a cloud holds the value itself"


@pytest.mark.parametrize(
    ("package", "token", "inputs", "prefix"),
    [
        (
            "gcp",
            "gcp:container/cluster:Cluster",
            {"location": "us-central1"},
            "projects/rehearsal/locations/us-central1/clusters/one-",
        ),
        (
            "azure-native",
            # One that nothing more is known of than its SDK says.
            "azure-native:containerservice:ManagedClusterSnapshot",
            {"resourceGroupName": "rg"},
            "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Containerservice/",
        ),
    ],
)
def test_every_clouds_resources_are_made_named_and_identified(
    tmp_path: Path, package: str, token: str, inputs: Properties, prefix: str
) -> None:
    with (
        serve(CloudProvider(package, tmp_path / "c.json", Faults())) as served,
        calling(served.port) as provider,
    ):
        engine = Engine(provider=provider, type=token)
        made, outputs = engine.create(inputs)
        assert made.startswith(prefix), f"{made} does not say where the object is"
        assert str(outputs["name"]).startswith("one"), "the object has no name"
        assert engine.read(made, inputs=inputs)[2] == inputs, "the object cannot be read back"
