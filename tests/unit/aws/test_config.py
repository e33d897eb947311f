"""The meaning of a valid AWS configuration."""

from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.aws.config.sections import AwsExistingNetwork, AwsNewNetwork, AwsPlatform
from pulumi_holdfast.config.cidrs import MOST_ZONES, plan_subnets
from pulumi_holdfast.config.rules import market_of, nearest_machine
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import regions
from pulumi_holdfast.stack_program import load_platform
from tests.support.builders.configurations import (
    AWS_REGION,
    Document,
    aws_document,
    aws_platform,
    aws_problems,
    entry,
    new_cluster,
    read_aws,
    section,
)
from tests.support.invalid_configs.mistakes import changed

ROOT = Path(__file__).parents[3]
BROUGHT: Document = {
    "vpcId": "vpc-0123456789abcdef0",
    "privateSubnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
}


def test_one_pool_and_access_are_enough() -> None:
    bare: Document = {
        "cloud": "aws",
        "cluster": {"privateAccessCidrs": ["10.0.0.0/8"]},
        "pools": [
            {
                "name": "cpu",
                "capacity": "on-demand",
                "instanceTypes": ["m7i.xlarge"],
                "maxNodes": 2,
                "default": True,
            }
        ],
    }
    platform = read_aws(bare)
    assert platform.protected, "what is forgotten must not be what can be destroyed"
    assert new_cluster(platform.cluster).public_access_cidrs == ()
    assert platform.network == AwsNewNetwork()


@pytest.mark.parametrize(("region", "refused"), [(AWS_REGION, 0), ("cn-north-1", 1), ("us-gov-west-1", 1)])
def test_images_are_cached_where_ecr_has_the_feature(region: str, refused: int) -> None:
    caches = [{"prefix": "quay", "upstream": "quay.io"}]
    found = aws_problems(aws_document(changed("", pullThroughCache=caches)), region)
    about = [problem for problem in found if problem.field.endswith(".pullThroughCache")]
    assert len(about) == refused, "in China and GovCloud the first rule would fail halfway"


@pytest.mark.parametrize(
    ("region", "partition"), [("us-west-2", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_the_region_determines_the_partition(region: str, partition: str) -> None:
    def change(document: Document) -> None:
        section(document, "cluster").pop("admins")
        section(document, "cluster")["systemNodes"] = {"instanceTypes": ["m5.large"]}
        document.update(
            network={"zones": 2},
            pools=[{**entry(document, "pools", 0), "instanceTypes": ["m5.xlarge"]}],
            namespaces=[],
        )

    platform = aws_platform(change, region)
    assert platform.region == region
    assert platform.partition == partition


def test_a_pool_by_family_has_the_machines_of_the_region() -> None:
    pool = aws_platform().pools[1]
    assert [machine.name for machine in pool.machines(AWS_REGION)] == ["c7i.xlarge", "c6i.xlarge"]


def test_a_spot_pool_by_family_omits_machines_without_spot() -> None:
    platform = aws_platform(
        lambda d: entry(d, "pools", 1).update(families=["t2", "t3"], sizes=["nano", "micro"])
    )
    assert [machine.name for machine in platform.pools[1].machines(AWS_REGION)] == [
        "t2.micro",
        "t3.nano",
        "t3.micro",
    ]


def test_a_pool_by_family_has_gpus() -> None:
    platform = aws_platform(
        lambda d: (
            entry(d, "pools", 2).pop("instanceTypes"),
            entry(d, "pools", 2).update(families=["p4d", "p4de"], sizes=["24xlarge"]),
        )
    )
    pool = platform.pools[2].as_pool(AWS_REGION)
    assert pool.has_gpus
    assert pool.capacity is CapacityType.SPOT


def test_an_existing_network_may_have_any_zone_and_a_placement_group_needs_one() -> None:
    assert isinstance(aws_platform(changed("", network=BROUGHT)).network, AwsExistingNetwork)
    existing = aws_document(
        lambda d: (d.update(network=BROUGHT), changed(".pools[2]", zones=["us-west-2d"])(d))
    )
    assert not aws_problems(existing)
    placed = aws_document(changed(".pools[2]", compactPlacement=True, zones=["us-west-2b"], efa=True))
    assert not aws_problems(placed)


def tracked(stack: str) -> AwsPlatform:
    return cast("AwsPlatform", load_platform(ROOT / f"stacks/Pulumi.{stack}.yaml"))


def test_the_development_stack_fits_the_quota_of_a_new_account() -> None:
    for pool in tracked("aws-dev").pools:
        smallest = min(machine.vcpus for machine in pool.machines(AWS_REGION))
        assert smallest <= 5, f"{pool.name}: a new account may run 5 vCPUs of standard machines each way"


def test_the_production_stack_is_made_in_the_account_that_it_names() -> None:
    assert tracked("aws-prod").account


@given(st.sampled_from(sorted(regions("aws"))), st.integers(0, MOST_ZONES + 2))
@settings(deadline=None)
def test_every_valid_number_of_zones_can_be_divided(region: str, zones: int) -> None:
    found = aws_problems({"cloud": "aws", "network": {"zones": zones}}, region)
    if not any(".network" in problem.field for problem in found):
        assert plan_subnets("10.40.0.0/16", zones), "what is read must not fail in a component"


@pytest.mark.parametrize(
    ("name", "fix"), [("m9z.large", "amd64"), ("m7g.lrage", "arm64"), ("m7i.xlrage", "amd64")]
)
def test_the_fix_of_an_unknown_type_keeps_the_architecture(name: str, fix: str) -> None:
    market = market_of("aws", "us-west-2", what="instance type", setting="", command="")
    near = nearest_machine(name, market)
    assert near is not None
    assert market.here[near].arch == fix
