"""EC2 pools: the EC2NodeClass, the EFA security group and the placement group."""

from dataclasses import replace
from typing import cast

import pytest

from pulumi_holdfast.aws.pools import Ec2NodeClassArgs, EfaFabric, EfaFabricArgs, ec2_node_class
from pulumi_holdfast.ladder.json import Json
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import mapping, objects, text, value

ARGS = Ec2NodeClassArgs(
    node_role="holdfast-nodes",
    subnet_ids=["subnet-0a", "subnet-0b"],
    security_group_ids=["sg-cluster", "sg-fabric"],
    ami_alias="al2023@v20260903",
    volume_gib=200,
    tags={"holdfast.dev/stack": "aws-dev"},
)


def spec(args: Ec2NodeClassArgs = ARGS) -> Json:
    return cast("Json", ec2_node_class(args).spec)


def test_the_node_class_is_an_ec2_node_class_with_the_configured_values() -> None:
    given = spec()
    made = ec2_node_class(ARGS)
    assert (made.api_version, made.kind) == ("karpenter.k8s.aws/v1", "EC2NodeClass")
    assert given["instanceStorePolicy"] == "RAID0"
    assert objects(given, "amiSelectorTerms") == [{"alias": "al2023@v20260903"}]
    subnets, groups = objects(given, "subnetSelectorTerms"), objects(given, "securityGroupSelectorTerms")
    assert subnets == [{"id": "subnet-0a"}, {"id": "subnet-0b"}]
    assert groups == [{"id": "sg-cluster"}, {"id": "sg-fabric"}]
    assert given["tags"] == {"holdfast.dev/stack": "aws-dev"}
    assert "networkInterfaces" not in given


@pytest.mark.parametrize("driver", [True, False])
def test_nodes_wait_for_the_block_storage_driver_only_where_the_stack_installs_it(driver: bool) -> None:
    taints = ec2_node_class(replace(ARGS, block_storage=driver)).startup_taints
    assert [taint.key for taint in taints] == ["ebs.csi.aws.com/agent-not-ready"] * driver


def test_instance_metadata_requires_version_2_with_one_hop() -> None:
    options = mapping(spec(), "metadataOptions")
    assert options["httpTokens"] == "required"
    assert options["httpPutResponseHopLimit"] == 1, "a pod, one hop away, must get no node credentials"


def test_volumes_are_encrypted_and_deleted_with_their_machine() -> None:
    (volume,) = objects(spec(), "blockDeviceMappings")
    assert volume["deviceName"] == "/dev/xvda"
    assert value(volume, "ebs", "encrypted") is True
    assert value(volume, "ebs", "deleteOnTermination") is True
    assert value(volume, "ebs", "volumeSize") == "200Gi"


def test_instances_get_the_nodes_role_or_an_existing_instance_profile() -> None:
    assert (spec()["role"], spec().get("instanceProfile")) == ("holdfast-nodes", None)
    isolated = spec(replace(ARGS, node_role=None, instance_profile="holdfast-nodes"))
    assert (isolated.get("role"), isolated["instanceProfile"]) == (None, "holdfast-nodes")


@pytest.mark.parametrize("both", [True, False])
def test_both_or_neither_identity_is_rejected(both: bool) -> None:
    with pytest.raises(ValueError, match="exactly one of node_role and instance_profile"):
        replace(ARGS, node_role="nodes" if both else None, instance_profile="nodes" if both else None)


def test_a_placement_group_is_used_only_if_configured() -> None:
    assert "placementGroupSelector" not in spec()
    grouped = spec(replace(ARGS, placement_group="pg-0a"))
    assert grouped["placementGroupSelector"] == {"id": "pg-0a"}, "by ID: a name could be reused"


def fabric(*, preview: bool = False) -> Recording:
    return record(lambda: EfaFabric("fabric", EfaFabricArgs(vpc_id="vpc-1")), preview=preview)


@pytest.mark.parametrize("preview", [False, True])
def test_the_fabric_is_a_security_group_with_a_separate_rule_for_each_direction(preview: bool) -> None:
    recording = fabric(preview=preview)
    made = sorted(resource.type for resource in recording if resource.custom)
    assert made == [
        "aws:ec2/securityGroup:SecurityGroup",
        "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
        "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    ]
    group = recording.one(":SecurityGroup")
    assert text(group, "vpcId") == "vpc-1"
    assert not {"ingress", "egress"} & group.inputs.keys()


@pytest.mark.parametrize("direction", ["Ingress", "Egress"])
def test_members_may_exchange_all_traffic_with_each_other_only(direction: str) -> None:
    rule = fabric().one(f":SecurityGroup{direction}Rule")
    assert text(rule, "ipProtocol") == "-1"
    ends = {text(rule, "securityGroupId"), text(rule, "referencedSecurityGroupId")}
    assert ends == {"fabric-members-id"}
    assert value(rule, "cidrIpv4") is None


def test_a_reservation_is_selected_only_if_configured() -> None:
    reserved = spec(replace(ARGS, reservation="cr-0123456789abcdef0"))
    assert reserved["capacityReservationSelectorTerms"] == [{"id": "cr-0123456789abcdef0"}]
    assert "capacityReservationSelectorTerms" not in spec()
