"""The fabric between a pool's machines, and where they stand to each other."""

from __future__ import annotations

import pytest

from holdfast.components.pools.ec2 import ClusterPlacement, EfaFabric, EfaFabricArgs
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import text, value


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
