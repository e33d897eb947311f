"""An AWS stack's configuration, read: what it means, and what is made of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.components.network.cidrs import MOST_ZONES, plan_subnets
from holdfast.infra.aws.config.network import AwsExistingNetwork, AwsNewNetwork
from holdfast.infra.program import load_platform
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import is_sold_in, machine_catalogue, regions
from tests.support.any_json import any_json
from tests.support.builders.configurations import (
    AWS_REGION,
    aws_document,
    aws_platform,
    aws_problems,
    entry,
    read_aws,
    section,
)

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from holdfast.infra.aws.config.stack import AwsPlatform
    from holdfast.scheduling.json import Json, JsonValue
    from tests.support.builders.configurations import Document

ROOT = Path(__file__).parents[4]
BROUGHT: Document = {
    "vpcId": "vpc-0123456789abcdef0",
    "privateSubnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
}


def test_a_bare_pool_and_a_way_in_are_enough() -> None:
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
    assert platform.cluster.public_access_cidrs == (), "nor what anybody can reach"
    assert platform.network == AwsNewNetwork(), "a network is made"


def test_the_region_is_what_stands_beside_the_document() -> None:
    assert aws_platform(
        region="us-east-1", change=lambda d: section(d, "network").update(zones=2)
    ).region == ("us-east-1"), "there is one place for it"


@pytest.mark.parametrize(
    ("region", "partition"), [("us-west-2", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_a_region_tells_the_partition_of_its_arns(region: str, partition: str) -> None:
    def change(document: Document) -> None:
        section(document, "cluster").pop("admins")
        section(document, "cluster")["systemNodes"] = {"instanceTypes": ["m5.large"]}
        document.update(
            network={"zones": 2},
            pools=[{**entry(document, "pools", 0), "instanceTypes": ["m5.xlarge"]}],
            namespaces=[],
        )

    assert aws_platform(change, region).partition == partition, "an ARN of another partition is nobody's"


def test_a_pool_by_family_has_the_machines_that_the_region_sells() -> None:
    pool = aws_platform().pools[1]
    assert [machine.name for machine in pool.machines(AWS_REGION)] == ["c7i.xlarge", "c6i.xlarge"], (
        "in the order in which they are written"
    )


def test_a_spot_pool_by_family_leaves_out_what_is_never_on_spot() -> None:
    platform = aws_platform(
        lambda d: entry(d, "pools", 1).update(families=["t2", "t3"], sizes=["nano", "micro"])
    )
    assert [machine.name for machine in platform.pools[1].machines(AWS_REGION)] == [
        "t2.micro",
        "t3.nano",
        "t3.micro",
    ], "t2.nano is not sold so, and a request for it would fail"


def test_a_pool_knows_its_gpus_however_its_machines_are_named() -> None:
    platform = aws_platform(
        lambda d: (
            entry(d, "pools", 2).pop("instanceTypes"),
            entry(d, "pools", 2).update(families=["p4d", "p4de"], sizes=["24xlarge"]),
        )
    )
    pool = platform.pools[2].as_pool(AWS_REGION)
    assert pool.has_gpus, "its taint hangs on it"
    assert pool.capacity is CapacityType.SPOT, "so does this one"


def test_two_ids_bring_a_network() -> None:
    platform = aws_platform(lambda d: d.update(network=BROUGHT))
    assert isinstance(platform.network, AwsExistingNetwork), "nothing else says so"


def test_a_pool_of_a_brought_network_may_name_any_zone_of_the_region() -> None:
    document = aws_document(
        lambda d: (d.update(network=BROUGHT), entry(d, "pools", 2).update(zones=["us-west-2d"]))
    )
    assert not aws_problems(document), "only the account knows where the subnets are"


def test_a_placement_group_in_one_zone_is_allowed() -> None:
    document = aws_document(
        lambda d: entry(d, "pools", 2).update(placementGroup=True, zones=["us-west-2b"], efa=True)
    )
    assert not aws_problems(document), "that is where its machines can be close together"


@pytest.mark.parametrize("stack", ["aws-dev", "aws-prod"])
def test_the_stacks_of_this_repository_are_valid(stack: str) -> None:
    platform = load_platform(ROOT / f"stacks/Pulumi.{stack}.yaml")
    assert platform.cloud == "aws", "and are read as what they are"


def tracked(stack: str) -> AwsPlatform:
    return cast("AwsPlatform", load_platform(ROOT / f"stacks/Pulumi.{stack}.yaml"))


def test_the_development_stack_needs_no_quota_of_gpus_and_can_go() -> None:
    platform = tracked("aws-dev")
    assert not any(pool.has_gpus for pool in platform.scheduling_pools()), "a new account has none"
    assert not platform.protected, "it is there to be thrown away"
    assert any(pool.capacity is CapacityType.SPOT for pool in platform.pools), "and shows what spot does"


def test_the_development_stack_has_machines_that_a_new_accounts_quota_holds() -> None:
    for pool in tracked("aws-dev").pools:
        smallest = min(machine.vcpus for machine in pool.machines(AWS_REGION))
        assert smallest <= 5, f"{pool.name}: a new account may run 5 vCPUs of standard machines each way"


def test_the_production_stack_is_closed_redundant_and_protected() -> None:
    platform = tracked("aws-prod")
    assert isinstance(platform.network, AwsNewNetwork), "its network is its own"
    assert platform.network.nat == "per-zone", "a zone that fails takes no other zone's way out"
    assert not platform.cluster.public_access_cidrs, "its endpoint is private"
    assert platform.cluster.private_access_cidrs, "and lets in who deploys"
    assert platform.protected, "nobody destroys it by a slip"
    assert platform.account, "nor makes it in another account"


def test_every_spot_tier_of_the_tracked_stacks_ends_on_demand() -> None:
    for stack in ("aws-dev", "aws-prod"):
        platform = tracked(stack)
        capacity = {pool.name: pool.capacity for pool in platform.pools}
        for namespace in platform.namespaces:
            last = namespace.ladder[-1].pool
            assert capacity[last] is CapacityType.ON_DEMAND, (
                f"{stack}: {namespace.name} has somewhere to fall back to"
            )


def test_reading_an_aws_stack_imports_no_sdk() -> None:
    program = (
        "import sys; from pathlib import Path; from holdfast.infra.program import load_platform; "
        f"load_platform(Path({str(ROOT / 'stacks/Pulumi.aws-dev.yaml')!r})); "
        "print([name for name in ('pulumi_aws', 'pulumi_kubernetes') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]", "a rehearsal reads it several times, and the SDK takes seconds"


def types_of(region: str, *, gpus: bool) -> list[str]:
    catalogue = machine_catalogue("aws").values()
    return sorted(
        machine.name
        for machine in catalogue
        if is_sold_in(machine.name, region)
        and (machine.gpus > 0) == gpus
        and machine.on_spot
        and machine.arch == "amd64"
    )


@st.composite
def platforms(draw: DrawFn) -> tuple[str, Document]:
    """A valid AWS stack's document, and the region it is for."""
    region = draw(st.sampled_from(["us-east-1", "us-west-2", "eu-west-1"]))
    pools: list[Document] = [
        {
            "name": f"pool-{index}",
            "capacity": "on-demand" if index == 0 else draw(st.sampled_from(["spot", "on-demand"])),
            "instanceTypes": draw(
                st.lists(
                    st.sampled_from(types_of(region, gpus=index > 0 and draw(st.booleans()))),
                    min_size=1,
                    max_size=4,
                    unique=True,
                ).map(lambda names: cast("JsonValue", names))
            ),
            "maxNodes": draw(st.integers(1, 1000)),
            "volumeGiB": draw(st.integers(30, 16384)),
            "default": index == 0,
        }
        for index in range(draw(st.integers(1, 4)))
    ]
    network = draw(
        st.one_of(
            st.just(BROUGHT),
            st.fixed_dictionaries(
                {"cidr": st.just("10.40.0.0/16"), "zones": st.integers(2, 3)},
                optional={"nat": st.sampled_from(["single", "per-zone"])},
            ),
        )
    )
    return region, {
        "cloud": "aws",
        "cluster": {"publicAccessCidrs": ["203.0.113.0/24"]},
        "network": cast("JsonValue", network),
        "pools": cast("JsonValue", pools),
        "protected": draw(st.booleans()),
        "checkpoints": {"retainDays": draw(st.integers(1, 3650)), "kms": draw(st.booleans())},
    }


@given(platforms())
@settings(max_examples=40, deadline=None)
def test_a_platform_written_again_reads_as_the_same(case: tuple[str, Document]) -> None:
    region, document = case
    platform = read_aws(document, region)
    written = cast(
        "Json", json.loads(platform.model_dump_json(by_alias=True, exclude_none=True, exclude={"region"}))
    )
    assert read_aws({**written}, region) == platform, "nothing is lost or changed on the way"


@given(platforms(), st.data())
@settings(max_examples=40, deadline=None)
def test_one_unknown_field_anywhere_is_exactly_one_problem(
    case: tuple[str, Document], data: st.DataObject
) -> None:
    region, document = case
    places = [document, cast("Document", document["network"]), *cast("list[Document]", document["pools"])]
    place = data.draw(st.sampled_from(places))
    spoiled = {**place, "surprise": 1}
    if place is BROUGHT:
        document["network"] = spoiled
    else:
        place.update(spoiled)
    (found,) = aws_problems(document, region)
    assert found.field.endswith(".surprise"), (
        "the field is named, without the parser's names for what it tried"
    )


@given(
    any_json(
        "account", "cluster", "network", "pools", "mirror", "images", "zones", "cidr", "vpcId", "families"
    ),
    st.sampled_from([None, "", "us-west-2", "mars"]),
)
@settings(max_examples=150, deadline=None)
def test_any_document_is_read_or_refused_and_nothing_else_happens(
    document: JsonValue, region: str | None
) -> None:
    given_cloud: Document = {**document, "cloud": "aws"} if isinstance(document, dict) else {"cloud": "aws"}
    found = aws_problems(given_cloud, region)
    assert found, "none of these has pools"
    assert all(problem.fix for problem in found), "a refusal without a fix leaves the user alone"


@given(st.sampled_from(sorted(regions("aws"))), st.integers(0, MOST_ZONES + 2))
@settings(deadline=None)
def test_every_number_of_zones_that_is_read_can_be_divided(region: str, zones: int) -> None:
    found = aws_problems({"cloud": "aws", "network": {"zones": zones}}, region)
    if not any(".network" in problem.field for problem in found):
        assert plan_subnets("10.40.0.0/16", zones), "what is read must not fail in a component"
