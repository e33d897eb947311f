"""Quotas of EC2 that a program sets: whether they are smaller than its pools may become."""

import pytest

from holdfast.policies.inputs.ec2_quotas import beyond_quotas
from holdfast.policies.resources import StackResource, Value
from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.machines import machine_catalogue
from holdfast.scheduling.reachability.facts import Limits
from holdfast.scheduling.reachability.machine_capacity import MachineCapacity, machine_capacity
from holdfast.scheduling.reachability.node_labels import Provisioner
from tests.support.builders.stack_resources import resource

P_ON_DEMAND = "L-417A185B"
ON_DEMAND = frozenset({"on-demand"})


def quota(value: Value, code: str = P_ON_DEMAND) -> StackResource:
    """A quota of EC2 that the program sets."""
    props = {"serviceCode": "ec2", "quotaCode": code, "value": value}
    return resource("aws:servicequotas/serviceQuota:ServiceQuota", "quota", props)


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
    found = [*beyond_quotas(machines("p4d.24xlarge"), ON_DEMAND, limits, [set_to])]
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
    found = [*beyond_quotas(machines(*names), kinds, Limits(nodes=4), [quota(192.0)])]
    assert not found, "machines that count against another quota are still started"
