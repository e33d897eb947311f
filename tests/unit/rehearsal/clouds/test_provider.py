"""The simulated provider checks, plans, creates, changes and deletes objects like a real one."""

import json
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.rehearsal.clouds import CloudProvider
from pulumi_holdfast.rehearsal.clouds.answers import Answers
from pulumi_holdfast.rehearsal.clouds.azure.names import SUBSCRIPTION
from pulumi_holdfast.rehearsal.clouds.schema import Schema
from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.plugin import serve
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Secret, to_struct
from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.support.clusters.provider_calls import Engine, Provider, calling, invoke, refused

_BUCKET = "aws:s3/bucket:Bucket"
_VPC = "aws:ec2/vpc:Vpc"
_SUBNET = "aws:ec2/subnet:Subnet"
_ROLE = "aws:iam/role:Role"
_GROUP = "aws:ec2/securityGroup:SecurityGroup"


def test_the_version_is_that_of_the_installed_sdk(aws: Provider) -> None:
    info = aws.GetPluginInfo(empty_pb2.Empty())
    assert info.version == Schema.for_package("aws").version, "the engine would look for another plugin"


def test_a_preview_knows_inputs_and_names_of_outputs(aws: Provider, state_file: Path) -> None:
    planned = Engine(provider=aws, type=_BUCKET).plan({"bucket": "ckpt", "forceDestroy": True})
    assert (planned["bucket"], planned["forceDestroy"]) == ("ckpt", True)
    assert planned["arn"] is UNKNOWN
    assert CloudState(state_file).read().all() == []
    engine = Engine(provider=aws, type=_VPC)
    planned = engine.plan({"cidrBlock": "10.0.0.0/16"})
    _, made = engine.create({"cidrBlock": "10.0.0.0/16"})
    assert UNKNOWN not in made.values()
    assert set(made) == set(planned)
    vpc, outputs = Engine(provider=aws, type=_VPC).create({"cidrBlock": "10.0.0.0/16"})
    assert vpc.startswith("vpc-")
    assert len(vpc) == len("vpc-") + 17
    assert outputs["arn"] == f"arn:aws:ec2:us-east-1:123456789012:vpc/{vpc}"
    assert outputs["enableDnsHostnames"] is False, "a boolean output must be one"


def test_a_name_is_generated_from_the_seed_kept_on_update_and_limited(aws: Provider) -> None:
    engine = Engine(provider=aws, type=_BUCKET, name="ckpt")
    first = engine.check({}, seed=b"one")
    assert str(first["bucket"]).startswith("ckpt-")
    assert len(str(first["bucket"])) == len("ckpt-") + 7
    assert engine.check({}, old=first, seed=b"two") == first, "an update would rename the bucket"
    renamed = Engine(provider=aws, type=_BUCKET, name="checkpoints")
    assert renamed.check({}, old=first, seed=b"two") == first, "an alias would replace the bucket"
    assert engine.check({}, seed=b"two") != first, "a replacement would clash with its predecessor"
    long = Engine(provider=aws, type=_ROLE, name="r" * 60)
    reason = "has 68 characters of at most 64; shorten the resource's name or set 'name'"
    refused(lambda: long.check({"assumeRolePolicy": "{}"}), reason)


def test_unknown_types_and_missing_properties_are_refused_by_name(aws: Provider) -> None:
    unknown = Engine(provider=aws, type="aws:s3/bukket:Bukket")
    refused(lambda: unknown.check({}), "has no type 'aws:s3/bukket:Bukket'")
    assert list(Engine(provider=aws, type=_SUBNET).refusals({})) == ["vpcId"]


def test_a_name_is_unique_in_its_scope_and_an_id_forever(aws: Provider) -> None:
    bucket: Properties = {"bucket": "ckpt"}
    Engine(provider=aws, type=_BUCKET).create(bucket)
    taken = "BucketAlreadyExists: The requested bucket name is not available: ckpt"
    Engine(provider=aws, type=_BUCKET, name="two").refuses_create(bucket, taken)
    groups = {name: Engine(provider=aws, type=_GROUP, name=name) for name in ("vpc-1", "vpc-2")}
    ids = {group.create({"name": "nodes", "vpcId": vpc})[0] for vpc, group in groups.items()}
    assert len(ids) == 2
    (first, *_) = ids
    for group in groups.values():
        group.delete(first)
    again = {group.create({"name": "new", "vpcId": vpc})[0] for vpc, group in groups.items()}
    assert not ids & again, "a stale reference to the first would seem to work"


def test_a_secret_input_comes_back_secret_and_is_kept_in_plain(aws: Provider, state_file: Path) -> None:
    _, outputs = Engine(provider=aws, type=_BUCKET).create({"bucket": "b", "policy": Secret("{}")})
    assert outputs["policy"] == Secret("{}"), "the engine would store it in plain text"
    assert CloudState(state_file).read().all()[0].inputs["policy"] == "{}"


@pytest.mark.parametrize(
    ("package", "token", "inputs", "prefix"),
    [
        (
            "gcp",
            "gcp:container/cluster:Cluster",
            {"location": "us-central1"},
            "projects/rehearsal/locations/us-central1/clusters/one-",
        ),
        # The simulator knows only the SDK of this type.
        (
            "azure",
            "azure-native:containerservice:ManagedClusterSnapshot",
            {"resourceGroupName": "rg"},
            f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Containerservice/",
        ),
    ],
)
def test_every_clouds_resources_are_made_named_and_identified(
    request: pytest.FixtureRequest, package: str, token: str, inputs: Properties, prefix: str
) -> None:
    engine = Engine(provider=request.getfixturevalue(package), type=token)
    made, outputs = engine.create(inputs)
    assert made.startswith(prefix)
    assert str(outputs["name"]).startswith("one")
    assert engine.read(made, inputs=inputs)[2] == inputs, "the object cannot be read back"


def test_a_missing_object_reads_as_nothing_and_can_be_deleted_but_not_updated(aws: Provider) -> None:
    engine = Engine(provider=aws, type=_BUCKET)
    assert engine.read("gone", inputs={"bucket": "gone"})[0] == ""
    missing = "ResourceNotFoundException: aws:s3/bucket:Bucket gone does not exist"
    engine.refuses_update("gone", {"bucket": "gone"}, missing)
    made, _ = engine.create({"bucket": "ckpt"})
    engine.removes(made)
    engine.removes(made)


def test_a_refresh_shows_drift_and_an_import_all_inputs(aws: Provider, state_file: Path) -> None:
    engine = Engine(provider=aws, type=_BUCKET)
    made, _ = engine.create({"bucket": "ckpt", "tags": {"a": "b"}})
    document = json.loads(state_file.read_text())
    changed = {"bucket": "ckpt", "tags": {"a": "changed"}, "forceDestroy": True}
    document["objects"][0]["inputs"] = changed
    state_file.write_text(json.dumps(document))
    _, outputs, inputs = engine.read(made, inputs={"bucket": "ckpt", "tags": {"a": "b"}})
    assert inputs == {"bucket": "ckpt", "tags": {"a": "changed"}}
    assert outputs["forceDestroy"] is True
    assert engine.read(made)[2] == changed


def test_a_previewed_update_changes_nothing_and_an_update_keeps_computed_values(aws: Provider) -> None:
    engine = Engine(provider=aws, type=_VPC)
    vpc, before = engine.create({"cidrBlock": "10.0.0.0/16"})
    planned = engine.update(vpc, {"cidrBlock": "10.0.0.0/16", "tags": {"a": UNKNOWN}}, preview=True)
    assert planned["tags"] == {"a": UNKNOWN}, "what is not known yet must stay so"
    assert planned["tagsAll"] is UNKNOWN
    assert planned["ownerId"] == before["ownerId"]
    assert engine.read(vpc)[1] == before
    after = engine.update(vpc, {"cidrBlock": "10.0.0.0/16", "tags": {"a": "b"}})
    assert (after["arn"], after["tagsAll"]) == (before["arn"], {"a": "b"})


def test_a_delete_the_cloud_refuses_leaves_the_object(aws: Provider) -> None:
    engine = Engine(provider=aws, type=_VPC)
    vpc, _ = engine.create({"cidrBlock": "10.0.0.0/16"})
    Engine(provider=aws, type=_SUBNET).create({"vpcId": vpc, "cidrBlock": "10.0.0.0/24"})
    engine.refuses_delete(vpc, "DependencyViolation")
    assert engine.read(vpc)[0] == vpc


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        ({"bucket": "a"}, {"bucket": "a", "tags": {}}, []),
        ({"bucket": "a"}, {"bucket": "b"}, ["bucket"]),
        ({"bucket": "one-0123abc"}, {"bucket": UNKNOWN}, ["bucket"]),
    ],
)
def test_a_bucket_is_its_name(aws: Provider, old: Properties, new: Properties, replaces: list[str]) -> None:
    answer = Engine(provider=aws, type=_BUCKET).diff(old, new)
    assert (list(answer.replaces), answer.deleteBeforeReplace) == (replaces, False)


@pytest.mark.parametrize(("name", "deletes_first"), [("mine", True), ("one-0123abc", False)])
def test_a_fixed_name_is_deleted_before_its_replacement(
    aws: Provider, name: str, *, deletes_first: bool
) -> None:
    old = {"name": name, "roleArn": "a", "vpcConfig": {"subnetIds": ["s"]}}
    answer = Engine(provider=aws, type="aws:eks/cluster:Cluster").diff(old, {**old, "roleArn": "b"})
    assert list(answer.replaces) == ["roleArn"], "a cluster's role cannot be changed in place"
    assert answer.deleteBeforeReplace is deletes_first, "two clusters of one name cannot exist together"
    assert answer.detailedDiff["roleArn"].kind == provider_pb2.PropertyDiff.UPDATE_REPLACE


def _configure(provider: Provider, **settings: str) -> None:
    provider.Configure(provider_pb2.ConfigureRequest(args=to_struct(settings)))


def test_each_provider_instance_keeps_its_own_configuration(state_file: Path) -> None:
    with serve(CloudProvider("aws", state_file, Faults())) as served:
        arns: set[str] = set()
        for region in ("us-east-1", "eu-west-1"):
            with calling(served.port) as provider:
                _configure(provider, region=region)
                _, outputs = Engine(provider=provider, type=_VPC, name=region).create({})
                arns.add(str(outputs["arn"]).split(":")[3])
    assert arns == {"us-east-1", "eu-west-1"}


def test_the_configuration_of_the_provider_decides_tags_and_region(aws: Provider) -> None:
    _configure(aws, defaultTags=json.dumps({"tags": {"team": "ml", "a": "default"}}))
    _, outputs = Engine(provider=aws, type=_VPC).create({"tags": {"a": "own"}})
    assert outputs["tagsAll"] == {"team": "ml", "a": "own"}, "a resource's own tag wins over the default"
    _configure(aws, region="eu-west-1")
    zones = invoke(aws, "aws:index/getAvailabilityZones:getAvailabilityZones", {})["names"]
    assert zones == ["eu-west-1a", "eu-west-1b", "eu-west-1c"]


def test_unknown_functions_components_and_methods_are_refused_by_name(aws: Provider) -> None:
    token = "aws:ssm/getParameter:getParameter"
    reason = (
        f"function '{token}' of aws is not simulated. Write its result into a file, "
        f"`{token}: [{{arguments: {{name: /team/vpc}}, result: {{…}}}}]`, and pass it with --answers FILE"
    )
    refused(lambda: invoke(aws, token, {"name": "/team/vpc"}), reason)
    component = provider_pb2.ConstructRequest(type="aws:network:Everything", name="network")
    reason = "component 'aws:network:Everything' is not simulated; register its resources"
    refused(lambda: aws.Construct(component), reason)
    method = provider_pb2.CallRequest(tok="aws:network:Everything/open")
    refused(lambda: aws.Call(method), "method 'aws:network:Everything/open' is not simulated")


def test_answers_of_a_file_come_before_the_functions_of_the_cloud(tmp_path: Path, state_file: Path) -> None:
    file = tmp_path / "answers.yaml"
    file.write_text(
        "aws:ec2/getAmi:getAmi: {id: ami-1}\n"
        "aws:ssm/getParameter:getParameter:\n"
        "  - {arguments: {name: /team/vpc}, result: {value: vpc-1}}\n"
        "  - {arguments: {}, result: {value: other}}\n"
    )
    provider = CloudProvider("aws", state_file, Faults(), answers=Answers.read(file))
    with serve(provider) as served, calling(served.port) as aws:
        assert invoke(aws, "aws:ec2/getAmi:getAmi", {"mostRecent": True}) == {"id": "ami-1"}
        values = [
            invoke(aws, "aws:ssm/getParameter:getParameter", {"name": name})["value"]
            for name in ("/team/vpc", "/team/key")
        ]
    assert values == ["vpc-1", "other"]


def test_a_file_of_answers_that_is_none_is_refused_with_its_form(tmp_path: Path) -> None:
    file = tmp_path / "answers.yaml"
    with pytest.raises(RehearsalError, match="does not exist; name a YAML file"):
        Answers.read(file)
    file.write_text("aws:ec2/getAmi:getAmi: ami-1\n")
    with pytest.raises(RehearsalError, match="getAmi is no result; write a mapping"):
        Answers.read(file)


def test_an_ordered_failure_of_the_nth_create_makes_nothing(state_file: Path) -> None:
    faults = Faults()
    faults.fail_create(2, "VpcLimitExceeded")
    with serve(CloudProvider("aws", state_file, faults)) as served, calling(served.port) as aws:
        Engine(provider=aws, type=_VPC).create({})
        second = Engine(provider=aws, type=_VPC, name="two")
        second.refuses_create({}, "creating two: VpcLimitExceeded")
    assert len(CloudState(state_file).read().all()) == 1


def test_a_crash_after_a_create_leaves_the_object_and_no_answer(state_file: Path) -> None:
    faults = Faults(on_crash=lambda: None)
    faults.crash_after_create(1)
    with serve(CloudProvider("aws", state_file, faults)) as served, calling(served.port) as aws:
        engine = Engine(provider=aws, type=_VPC)
        request = provider_pb2.CreateRequest(urn=engine.urn, type=_VPC, name="one", properties=to_struct({}))
        call = aws.Create.future(request)
        with pytest.raises(grpc.FutureTimeoutError):
            call.result(timeout=0.2)
    (orphan,) = CloudState(state_file).read().all()
    assert orphan.urn == engine.urn, "the next run cannot find what this one made"
