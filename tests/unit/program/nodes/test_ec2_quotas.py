"""Quotas of EC2 that a program sets: whether they are smaller than its pools may become."""

from dataclasses import replace

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.reachability.facts import Limits
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity, machine_capacity
from pulumi_holdfast.ladder.reachability.node_labels import Provisioner
from pulumi_holdfast.program.nodes.ec2_quotas import beyond_quotas
from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.stack_resources import node_pool, resource

P_ON_DEMAND = "L-417A185B"
ON_DEMAND = frozenset({"on-demand"})


def quota(value: Value, code: str = P_ON_DEMAND, **props: Value) -> StackResource:
    """A quota of EC2 that the program sets."""
    given: Value = {"serviceCode": "ec2", "quotaCode": code, "value": value, **props}
    return resource("aws:servicequotas/serviceQuota:ServiceQuota", "quota", given)


def provider(region: Value) -> StackResource:
    """A provider of AWS in a region."""
    return resource("pulumi:providers:aws", f"aws-{region}", {"region": region})


GROUP = resource("aws:eks/nodeGroup:NodeGroup", "a100", {"clusterName": "lab"})


def machines(*names: str) -> tuple[MachineCapacity, ...]:
    """Machine types of EC2."""
    catalogue = machine_catalogue("aws")
    return tuple(machine_capacity(catalogue[name], Provisioner.EKS) for name in names)


@pytest.mark.parametrize(
    ("set_to", "limits", "what"),
    [
        (quota(192.0), Limits(nodes=4), "192 vCPUs, and its limits allow 384"),
        (quota(384.0), Limits(nodes=4), ""),
        (quota(192.0), Limits(cpu_millis=192_000), ""),
        (quota(192.0), Limits(), "allow any number"),
        (quota(192.0, "L-7212CCBC"), Limits(nodes=4), ""),
        (quota(UNKNOWN), Limits(nodes=4), ""),
    ],
    ids=["smaller", "enough", "limited", "unlimited", "of spot", "unknown"],
)
def test_quota_of_the_program_is_compared_with_the_limits_of_a_pool(
    set_to: StackResource, limits: Limits, what: str
) -> None:
    found = [*beyond_quotas(machines("p4d.24xlarge"), ON_DEMAND, limits, GROUP, [set_to])]
    assert len(found) == bool(what), f"EC2 starts no machine beyond it: {found}"
    assert all(what in each for each in found), f"the message has both figures: {found}"


@pytest.mark.parametrize(
    ("names", "kinds"),
    [(("p4d.24xlarge", "g6.12xlarge"), ON_DEMAND), (("p4d.24xlarge",), ON_DEMAND | {"spot"})],
    ids=["another quota", "spot, too"],
)
def test_pool_that_may_go_on_beyond_a_quota_is_not_named(
    names: tuple[str, ...], kinds: frozenset[str]
) -> None:
    found = [*beyond_quotas(machines(*names), kinds, Limits(nodes=4), GROUP, [quota(192.0)])]
    assert not found, "machines that count against another quota are still started"


EAST, WEST, LATER = provider("us-east-1"), provider("us-west-2"), provider(UNKNOWN)


def by(made_by: StackResource, made: StackResource) -> StackResource:
    """The same resource with a provider."""
    return replace(made, provider=made_by.urn)


@pytest.mark.parametrize(
    ("group", "set_to", "counts"),
    [
        (by(EAST, GROUP), by(EAST, quota(192.0)), True),
        (by(EAST, GROUP), by(WEST, quota(192.0)), False),
        (by(EAST, GROUP), by(LATER, quota(192.0)), True),
        (by(EAST, GROUP), quota(192.0), True),
        (by(EAST, GROUP), by(EAST, quota(192.0, region="us-west-2")), False),
        (by(WEST, GROUP), by(EAST, quota(192.0, region="us-west-2")), True),
        (by(EAST, GROUP), by(EAST, quota(192.0, region=UNKNOWN)), True),
    ],
    ids=["one provider", "of another region", "not known yet", "not shown", "region of its own", "region of both", "own, not known"],
)  # fmt: skip
def test_quota_of_another_region_is_not_compared(
    group: StackResource, set_to: StackResource, *, counts: bool
) -> None:
    resources = [EAST, WEST, LATER, group, set_to]
    found = [*beyond_quotas(machines("p4d.24xlarge"), ON_DEMAND, Limits(nodes=4), group, resources)]
    assert bool(found) is counts, f"EC2 counts by region: {found}"


def test_nodepool_is_compared_with_the_quota_of_its_clusters_region() -> None:
    cluster = by(EAST, resource("aws:eks/cluster:Cluster", "lab", {"name": "lab"}))
    made = node_pool("a100", {"key": CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]})
    for where, counts in ((EAST, True), (WEST, False)):
        resources = [EAST, WEST, cluster, by(where, quota(192.0))]
        found = [*beyond_quotas(machines("p4d.24xlarge"), ON_DEMAND, Limits(nodes=4), made, resources)]
        assert bool(found) is counts, f"the only cluster is in us-east-1: {found}"
