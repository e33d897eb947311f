"""What an EC2NodeClass says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.components.pools.ec2 import Ec2NodeClassArgs, ec2_node_class
from tests.support.inputs import mapping, objects, value

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

from holdfast.components.pools.ec2 import ClusterPlacement, EfaFabric, EfaFabricArgs
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import text

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


def test_it_is_karpenters_kind_for_ec2() -> None:
    made = ec2_node_class(ARGS)
    assert (made.api_version, made.kind) == ("karpenter.k8s.aws/v1", "EC2NodeClass"), (
        "what NodePools refer to"
    )


def test_the_metadata_service_answers_nodes_by_version_2_and_no_pod() -> None:
    options = mapping(spec(), "metadataOptions")
    assert options["httpTokens"] == "required", "version 1 gives credentials to any forged request"
    assert options["httpPutResponseHopLimit"] == 1, (
        "a pod is a hop further than the node, whose role is not its own"
    )


def test_volumes_are_encrypted_and_go_with_their_machine() -> None:
    (volume,) = objects(spec(), "blockDeviceMappings")
    assert volume["deviceName"] == "/dev/xvda", (
        "Amazon Linux 2023 boots from it; another would be a second disk"
    )
    assert value(volume, "ebs", "encrypted") is True, "images and scratch files of training lie on it"
    assert value(volume, "ebs", "deleteOnTermination") is True, "spot machines come and go, and disks cost"
    assert value(volume, "ebs", "volumeSize") == "200Gi", "as large as asked for"


def test_local_disks_are_put_to_use() -> None:
    assert spec()["instanceStorePolicy"] == "RAID0", "a p5 brings 30 TB that would lie idle"


def test_the_image_is_pinned_to_a_release() -> None:
    assert objects(spec(), "amiSelectorTerms") == [{"alias": "al2023@v20260903"}], (
        "a newer image is rolled out on purpose"
    )


def test_subnets_and_security_groups_are_selected_by_id() -> None:
    subnets, groups = objects(spec(), "subnetSelectorTerms"), objects(spec(), "securityGroupSelectorTerms")
    assert subnets == [{"id": "subnet-0a"}, {"id": "subnet-0b"}], (
        "a network that is not ours is not tagged by us"
    )
    assert groups == [{"id": "sg-cluster"}, {"id": "sg-fabric"}], "nor are its security groups"


def test_instances_get_the_role_of_nodes() -> None:
    assert (spec()["role"], spec().get("instanceProfile")) == ("holdfast-nodes", None), (
        "Karpenter makes the profile itself"
    )


def test_where_iam_is_out_of_reach_instances_get_a_profile_that_is_there() -> None:
    isolated = spec(replace(ARGS, node_role=None, instance_profile="holdfast-nodes"))
    assert (isolated.get("role"), isolated["instanceProfile"]) == (None, "holdfast-nodes"), (
        "IAM has no endpoint in a VPC, so Karpenter could make none"
    )


@pytest.mark.parametrize("both", [True, False])
def test_an_instance_has_exactly_one_identity(both: bool) -> None:
    with pytest.raises(ValueError, match="exactly one of node_role and instance_profile"):
        replace(ARGS, node_role="nodes" if both else None, instance_profile="nodes" if both else None)


def test_a_pool_stands_in_a_placement_group_only_where_it_is_given_one() -> None:
    assert "placementGroupSelector" not in spec(), "it narrows what EC2 can sell"
    grouped = spec(replace(ARGS, placement_group="pg-0a"))
    assert grouped["placementGroupSelector"] == {"id": "pg-0a"}, "by id: a name could come to mean another"


def test_tags_are_put_on_what_karpenter_makes() -> None:
    assert spec()["tags"] == {"holdfast.dev/stack": "aws-dev"}, (
        "the provider's default tags do not reach instances that Karpenter starts"
    )


def test_no_fabric_adapter_is_listed() -> None:
    assert "networkInterfaces" not in spec(), "types of one pool differ in how many they have"


def fabric(*, preview: bool = False) -> Recording:
    return record(lambda: EfaFabric("fabric", EfaFabricArgs(vpc_id="vpc-1")), preview=preview)


@pytest.mark.parametrize("preview", [False, True])
def test_the_fabric_is_a_security_group_with_a_rule_each_way(preview: bool) -> None:
    made = sorted(resource.type for resource in fabric(preview=preview) if resource.custom)
    assert made == [
        "aws:ec2/securityGroup:SecurityGroup",
        "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
        "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    ], "and nothing else"


@pytest.mark.parametrize("direction", ["Ingress", "Egress"])
def test_members_exchange_anything_with_each_other_and_with_no_one_else(direction: str) -> None:
    rule = fabric().one(f":SecurityGroup{direction}Rule")
    assert text(rule, "ipProtocol") == "-1", "an adapter passes by protocols that a rule could name"
    ends = {text(rule, "securityGroupId"), text(rule, "referencedSecurityGroupId")}
    assert ends == {"fabric-members-id"}, "the group itself, which an adapter insists on"
    assert value(rule, "cidrIpv4") is None, "the cluster's own group says what else a node may reach"


def test_the_group_itself_lets_nothing_in_or_out() -> None:
    group = fabric().one(":SecurityGroup")
    assert text(group, "vpcId") == "vpc-1", "where the machines are"
    assert not {"ingress", "egress"} & group.inputs.keys(), (
        "its rules are apart, so that neither overwrites the other"
    )


def test_a_placement_group_keeps_machines_close_together() -> None:
    group = record(lambda: ClusterPlacement("close")).one(":PlacementGroup")
    assert text(group, "strategy") == "cluster", "the others keep machines apart"
