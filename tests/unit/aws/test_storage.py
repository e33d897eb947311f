"""Volumes of data on AWS: `stacks/Pulumi.aws-data.yaml`, which has every kind."""

import json

import pytest

from pulumi_holdfast.aws.identities import dataset_access
from pulumi_holdfast.aws.storage import mount_policy
from pulumi_holdfast.ladder.errors import ConfigError
from tests.support.builders.aws_stacks import VPC, composed, stack
from tests.support.builders.configurations import Document, aws_platform
from tests.support.fakes.iam_evaluation import Request, is_allowed
from tests.support.fakes.pulumi_engine import Recorded
from tests.support.inputs import mapping, text, value

RECORDING = "aws-data"
ARN = "arn:aws:s3:::datasets"


def spec(namespace: str, volume: str) -> Recorded:
    return stack(RECORDING).one(":PersistentVolume", f"main-volume-{volume}-of-{namespace}-volume")


def protected_stack(**volume: object) -> Document:
    document: Document = {"name": "home", "kind": "shared", "namespaces": ["vision"]}
    return {**document, **volume}  # pyright: ignore[reportReturnType] - JSON


def test_the_jobs_of_its_namespaces_and_no_others_read_a_bucket_and_change_nothing() -> None:
    policies = [each for each in stack(RECORDING).of(":RolePolicy") if "access-to-datasets" in each.name]
    roles = [text(each, "role") for each in policies]
    assert sorted(roles) == [
        "main-checkpoint-access-of-speech-role-0a1b2c3",
        "main-checkpoint-access-of-vision-role-0a1b2c3",
    ]
    policy = dataset_access(ARN)
    ours = {"aws:ResourceAccount": "${aws:PrincipalAccount}"}

    def may(action: str, resource: str) -> bool:
        return is_allowed([policy], Request(action=action, resource=resource, context=ours))

    assert may("s3:GetObject", f"{ARN}/a")
    assert may("s3:ListBucket", ARN)
    assert not may("s3:GetObject", f"{ARN}-2/a")
    for action in ("s3:PutObject", "s3:DeleteObject"):
        assert not may(action, f"{ARN}/a")


def test_a_bucket_is_mounted_with_the_identity_of_the_pod() -> None:
    attributes = mapping(spec("speech", "datasets"), "spec", "csi", "volumeAttributes")
    assert attributes["authenticationSource"] == "pod"
    assert attributes["bucketName"] == "main-volume-datasets-data-bucket-0a1b2c3"
    assert "read-only" in str(value(spec("speech", "datasets"), "spec", "mountOptions"))
    handles = {text(spec(each, "datasets"), "spec", "csi", "volumeHandle") for each in ("vision", "speech")}
    assert len(handles) == 2, "Kubernetes mounts a handle once on a node"


def test_a_shared_file_system_is_mounted_in_each_zone_by_an_access_point_with_tls_alone() -> None:
    recording = stack(RECORDING)
    assert value(recording.one("FileSystem", "main-volume-home-system"), "encrypted") is True
    assert len(recording.of(":MountTarget")) == 2
    (point,) = recording.of(":AccessPoint")
    handle = text(spec("vision", "home"), "spec", "csi", "volumeHandle")
    assert handle == f"main-volume-home-system-id::{point.name}-id"
    (statement,) = json.loads(mount_policy("fs", ["point"]))["Statement"]
    assert statement["Condition"]["Bool"]["aws:SecureTransport"] == "true"
    assert statement["Condition"]["ArnEquals"] == {"elasticfilesystem:AccessPointArn": ["point"]}
    assert statement["Resource"] == ["fs"]


def test_lustre_is_in_the_subnet_of_its_zone_and_follows_the_bucket() -> None:
    recording = stack(RECORDING)
    system = recording.one(":LustreFileSystem")
    assert text(system, "subnetIds") == "main-network-private-subnet-us-west-2a-id"
    imports = recording.one(":DataRepositoryAssociation")
    assert text(imports, "dataRepositoryPath") == "s3://main-volume-datasets-data-bucket-0a1b2c3"
    assert "exportPolicy" not in str(imports.inputs), "what jobs write there stays out of the data sets"
    zones = value(spec("vision", "scratch"), "spec", "nodeAffinity", "required", "nodeSelectorTerms")
    assert "us-west-2a" in str(zones)


def test_file_systems_admit_their_own_ports_from_nodes_alone() -> None:
    rules = [each for each in stack(RECORDING).of(":SecurityGroupIngressRule") if "-ports-" in each.name]
    assert {(value(each, "fromPort"), value(each, "toPort")) for each in rules} == {
        (2049, 2049),
        (988, 988),
        (1018, 1023),
    }
    assert not any("cidrIpv4" in each.inputs for each in rules)


def test_each_driver_is_on_every_node_and_no_stack_without_volumes_has_one() -> None:
    addons = [each for each in stack(RECORDING).of(":Addon") if "storage-drivers" in each.name]
    assert {text(each, "addonName") for each in addons} == {
        "aws-mountpoint-s3-csi-driver",
        "aws-efs-csi-driver",
        "aws-fsx-csi-driver",
    }
    for each in addons:
        node = json.loads(text(each, "configurationValues"))["node"]
        assert node in ({"tolerateAllTaints": True}, {"tolerations": [{"operator": "Exists"}]})
    others = {each.type for each in stack("aws-prod")}
    assert not {each for each in others if each.startswith(("aws:efs", "aws:fsx"))}


@pytest.mark.parametrize(("deleted", "kept"), [(False, True), (True, False)])
def test_data_outlives_the_stack_unless_the_volume_says_otherwise(deleted: bool, kept: bool) -> None:
    volume = protected_stack(deleteWithStack=deleted)
    recording = composed(aws_platform(lambda document: document.update(storage=[volume])))
    system = recording.one(":FileSystem")
    assert (system.protect, system.retain_on_delete) == (kept, kept)


def test_claims_exist_in_the_namespaces_of_a_volume_alone_and_jobs_may_mount_them() -> None:
    recording = stack(RECORDING)
    claims = {
        (text(each, "metadata", "namespace"), text(each, "metadata", "name"))
        for each in recording.of(":PersistentVolumeClaim")
    }
    assert claims == {
        ("vision", "datasets"),
        ("vision", "home"),
        ("vision", "scratch"),
        ("speech", "datasets"),
    }
    namespace = recording.one("core/v1:Namespace", "main-namespace-vision-namespace")
    assert mapping(namespace, "metadata", "annotations") == {
        "holdfast.dev/volume-claims": "datasets,home,scratch"
    }
    assert "annotations" not in mapping(
        stack("aws-prod").one("core/v1:Namespace", "main-namespace-vision-namespace"), "metadata"
    )


def test_lustre_in_a_zone_that_the_network_lacks_is_refused_before_it_is_made() -> None:
    def change(document: Document) -> None:
        document["network"] = {"cidr": "10.40.0.0/16", "zones": 2}
        document["storage"] = [
            {
                "name": "scratch",
                "kind": "parallel",
                "namespaces": ["vision"],
                "zone": "us-west-2c",
                "sizeGiB": 1200,
            }
        ]

    with pytest.raises(ConfigError, match="us-west-2c"):
        composed(aws_platform(change))


def test_an_existing_network_gives_lustre_its_subnet_and_an_existing_bucket_its_data() -> None:
    subnets = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]

    def change(document: Document) -> None:
        document["network"] = {"vpcId": VPC, "privateSubnetIds": [*subnets]}
        document["storage"] = [
            {"name": "data", "kind": "bucket", "namespaces": ["vision"], "existing": "ours"},
            {
                "name": "scratch",
                "kind": "parallel",
                "namespaces": ["vision"],
                "zone": "us-west-2a",
                "sizeGiB": 1200,
                "subnetId": subnets[1],
                "imports": "data",
            },
        ]

    recording = composed(aws_platform(change))
    assert text(recording.one(":LustreFileSystem"), "subnetIds") == subnets[1]
    assert text(recording.one(":DataRepositoryAssociation"), "dataRepositoryPath") == "s3://ours"
    assert not [each.name for each in recording.of(":Bucket") if "checkpoints" not in each.name]
