"""The lifecycle of an AWS network on the real engine."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import pulumi
import pytest

from pulumi_holdfast.rehearsal.engine import CommandOutcome
from tests.support.clusters.cloud_program import CloudProgram

pytestmark = pytest.mark.engine

_ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    return CloudProgram(root=tmp_path)


def _machines(subnet_ids: Sequence[pulumi.Input[str]]) -> None:
    """Something that stands in the subnets and drains through them."""
    from pulumi_aws import ec2

    for at, subnet in enumerate(subnet_ids):
        ec2.Instance(f"machine-{at}", ami="ami-1", instance_type="m7i.large", subnet_id=subnet)


def _network(
    *, nat: Literal["single", "per-zone"] = "single", zones: tuple[str, ...] = _ZONES
) -> Callable[[], None]:
    def program() -> None:
        from pulumi_holdfast.aws.network import AwsNetwork, AwsNetworkArgs

        args = AwsNetworkArgs(cidr="10.40.0.0/16", zones=zones, region="us-east-1", nat=nat)
        network = AwsNetwork("network", args)
        pulumi.export("subnets", network.private_subnet_ids)
        _machines(network.private_subnet_ids)

    return program


def _isolated() -> None:
    from pulumi_holdfast.aws.network import AwsIsolatedNetwork, AwsIsolatedNetworkArgs

    args = AwsIsolatedNetworkArgs(cidr="10.40.0.0/16", zones=_ZONES, region="us-east-1")
    _machines(AwsIsolatedNetwork("network", args).private_subnet_ids)


def _order(outcome: CommandOutcome, operation: str) -> dict[str, int]:
    """Names, with their types, of what a run did to resources, and when."""
    steps = [step.urn.split("$")[-1] for step in outcome.steps if step.operation == operation]
    return {
        urn.split("::")[-2].rpartition(":")[2] + " " + urn.split("::")[-1]: at for at, urn in enumerate(steps)
    }


@pytest.mark.parametrize("program", [_network(nat="per-zone"), _isolated], ids=["per-zone", "isolated"])
def test_a_network_is_created_unchanged_by_a_second_up_and_destroyed(
    stack: CloudProgram, program: Callable[[], None]
) -> None:
    made = stack.up(program)
    assert made.changes["create"] > 20
    assert stack.up(program).changed == 0
    assert stack.refresh(program).changed == 0
    order = _order(stack.destroy(program), "delete")
    ways = {
        name
        for name in order
        if name.startswith(("Route ", "RouteTableAssociation ", "NatGateway ", "VpcEndpoint "))
    }
    last_machine = max(at for name, at in order.items() if name.startswith("Instance "))
    assert min(order[name] for name in ways) > last_machine
    assert stack.cloud().read().all() == []


def test_a_gateway_in_each_zone_changes_no_subnet(stack: CloudProgram) -> None:
    before = stack.up(_network(nat="single")).outputs["subnets"]
    planned = stack.preview(_network(nat="per-zone"))
    assert "replace" not in planned.changes
    after = stack.up(_network(nat="per-zone"))
    assert after.outputs["subnets"] == before
    assert after.changes["update"] == 2
    assert "replace" not in after.changes
    assert stack.up(_network(nat="single")).changes["delete"] == 8


def test_an_added_zone_changes_no_other_zone(stack: CloudProgram) -> None:
    before = stack.up(_network(zones=_ZONES[:2])).outputs["subnets"]
    after = stack.up(_network(zones=_ZONES))
    assert isinstance(before, list)
    assert isinstance(after.outputs["subnets"], list)
    assert after.outputs["subnets"][:2] == before
    assert "replace" not in after.changes
    assert after.changes["update"] == 1
