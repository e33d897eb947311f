"""The cost of whole stacks: what idles on each cloud, recorded prices, the budget, and the texts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from pulumi_holdfast.cli.cost.command import cost_of, region_of
from pulumi_holdfast.cli.cost.spot_prices import read_spot_prices
from pulumi_holdfast.cli.cost.spot_queries import ask_spot_prices, prices_to_declare
from pulumi_holdfast.clouds import cloud_of
from pulumi_holdfast.config.preflight import CommandResult
from pulumi_holdfast.cost import budget_problems, cost_report, summary
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.prices import CostRange, exactly, price_facts
from pulumi_holdfast.stack_program import check_budget, load_platform
from tests.support.aws_commands import option_problems
from tests.support.builders.configurations import (
    AWS_REGION,
    HOMES,
    aws_document,
    aws_platform,
    gcp_platform,
    list_of,
    nap_platform,
    section,
    tier,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pulumi_holdfast.clouds import Platform
    from pulumi_holdfast.ladder.json import JsonValue
    from tests.support.builders.configurations import Document

STACKS = sorted(Path("stacks").glob("Pulumi.*.yaml"))


def idle(platform: Platform) -> dict[str, str]:
    return {each.title: str(each.cost) for each in cost_of(platform).idle}


@pytest.mark.parametrize("file", STACKS, ids=lambda file: file.stem.removeprefix("Pulumi."))
def test_every_stack_has_a_cost_that_each_text_can_say(file: Path) -> None:
    platform = load_platform(file)
    cost = cost_of(platform)
    assert {pool.name for pool in cost.pools} == {pool.name for pool in platform.pools}
    shapes = sum(len(each.shapes) * len(each.ladder) for each in platform.namespaces)
    assert len(cost.tiers) == shapes
    assert "Not counted" in "\n".join(cost_report(cost, region_of(platform)))
    assert "with full pools" in summary(cost)
    assert " a month" in summary(cost)
    unpriced = cost.with_full_pools.unknown
    assert all(name in summary(cost) for name in unpriced)


def test_aws_charges_follow_the_network_and_the_support_of_the_version() -> None:
    assert idle(aws_platform(lambda d: d.update(network={"zones": 3, "nat": "per-zone"}))) == {
        "EKS control plane": "0.10 to 0.60",
        "2 × system node": "0.19 to 0.23",
        "3 × NAT gateway": "0.14",
        "3 × public address": "0.01",
    }
    mirror = {
        "images": f"123456789012.dkr.ecr.{AWS_REGION}.amazonaws.com/mirror",
        "charts": f"oci://123456789012.dkr.ecr.{AWS_REGION}.amazonaws.com/charts",
    }
    cluster = {"privateAccessCidrs": ["10.40.0.0/16"]}
    isolated = idle(
        aws_platform(
            lambda d: d.update(network={"zones": 2, "isolated": True}, mirror=mirror, cluster=cluster)
        )
    )
    assert "16 × interface endpoint" in isolated
    assert "NAT gateway" not in isolated
    standard = idle(
        aws_platform(
            lambda d: d.update(cluster={"upgradePolicy": "standard", "publicAccessCidrs": ["203.0.113.0/24"]})
        )
    )
    assert standard["EKS control plane"] == "0.10"


@pytest.mark.parametrize("platform", [gcp_platform, nap_platform], ids=["gcp", "azure"])
def test_a_new_network_has_a_gateway_and_its_address(platform: Callable[[], Platform]) -> None:
    charged = idle(platform())
    assert "NAT gateway" in charged
    assert "public address" in charged


def test_each_storage_account_that_azure_leads_to_has_an_endpoint() -> None:
    homes = [{**each, "checkpoints": f"acme/holdfast/{each['name']}"} for each in HOMES]
    assert "private endpoint" not in idle(nap_platform())
    accepting = nap_platform(lambda d: d.update(acceptsFrom=homes))
    assert "2 × private endpoint" in idle(accepting)


def test_a_zonal_cluster_on_google_cloud_may_cost_nothing() -> None:
    zonal = gcp_platform(lambda d: section(d, "cluster").update(location="us-central1-a"))
    assert idle(zonal)["GKE free tier"] == "-0.10 to 0.00"
    assert "GKE free tier" not in idle(gcp_platform())


#: The clouds' own pages.
OWN_WORDS = {"aws.amazon.com", "cloud.google.com", "techcommunity.microsoft.com"}


def test_every_charge_is_the_clouds_own_word_or_has_two_sources() -> None:
    charges = price_facts()["charges"]
    alone = {
        name
        for name, charge in charges.items()
        if urlsplit(charge["source"]).hostname not in OWN_WORDS and "also" not in charge
    }
    assert alone == {"gke-extended", "azure-nat", "azure-endpoint", "aws-parallel-125"}
    page = Path("docs/economics.md").read_text("utf-8")
    assert all(f"`{name}`" in page for name in alone)


def test_the_price_of_a_tier_replaces_the_table() -> None:
    def declare(document: Document) -> None:
        tier(document, 0, 0)["price"] = 9.83

    before, after = cost_of(aws_platform()), cost_of(aws_platform(declare))
    name = aws_platform().namespaces[0].ladder[0].pool
    assert [str(pool.node) for pool in after.pools if pool.name == name] == ["9.83"]
    assert [pool.node for pool in after.pools if pool.name != name] == [
        pool.node for pool in before.pools if pool.name != name
    ]


def test_recorded_spot_prices_narrow_the_range(tmp_path: Path) -> None:
    record = {"InstanceType": "p4d.24xlarge", "ProductDescription": "Linux/UNIX", "SpotPrice": "9.5"}
    windows = {**record, "ProductDescription": "Windows", "SpotPrice": "99"}
    azure = {
        "armSkuName": "Standard_D4ds_v5",
        "skuName": "D4ds v5 Spot",
        "productName": "Ddsv5",
        "retailPrice": 0.03,
    }
    normal = {**azure, "skuName": "D4ds v5", "retailPrice": 0.2}
    file = tmp_path / "prices.json"
    file.write_text(
        json.dumps(
            {"SpotPriceHistory": [record, {**record, "SpotPrice": "11"}, windows], "Items": [azure, normal]}
        )
    )
    found = read_spot_prices(file)
    assert found == {"p4d.24xlarge": CostRange(low=9.5, high=11.0), "Standard_D4ds_v5": exactly(0.03)}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"SpotPriceHistory": [{"InstanceType": 3}]}'])
def test_a_file_without_spot_prices_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match="describe-spot-price-history"):
        read_spot_prices(file)


NOW = datetime(2026, 11, 23, 15, tzinfo=UTC)


def asked(
    platform: Platform, *answers: CommandResult
) -> tuple[Mapping[str, CostRange], list[tuple[str, ...]]]:
    """The prices from these answers of the cloud, and the commands that were run for them."""
    queries: list[tuple[str, ...]] = []
    left = iter(answers)

    def runner(words: tuple[str, ...]) -> CommandResult:
        queries.append(words)
        return next(left)

    return ask_spot_prices(cost_of(platform), region_of(platform), runner, NOW), queries


def said(document: object) -> CommandResult:
    return CommandResult(code=0, output=json.dumps(document), errors="")


def test_aws_is_asked_for_the_spot_prices_of_now_with_a_command_that_it_has() -> None:
    platform = aws_platform()
    spot = [pool for pool in cost_of(platform).pools if pool.capacity is CapacityType.SPOT]
    machines = sorted({name for pool in spot for name in pool.machines})
    dear = {"InstanceType": machines[0], "ProductDescription": "Linux/UNIX", "SpotPrice": "9.5"}
    found, (query,) = asked(platform, said({"SpotPriceHistory": [dear, {**dear, "SpotPrice": "8"}]}))
    assert found == {machines[0]: CostRange(low=8.0, high=9.5)}
    assert list(option_problems(query)) == []
    assert query[-len(machines) :] == tuple(machines)
    (priced, *_) = [pool.name for pool in spot if machines[0] in pool.machines]
    lines = list(prices_to_declare(cost_of(platform), found))
    assert f"  {priced}: 8 ({machines[0]})" in lines
    assert len(lines) == 1 + len(spot)


def test_azure_is_asked_page_by_page_in_batches_without_a_credential() -> None:
    platform = nap_platform()
    spot = [pool for pool in cost_of(platform).pools if pool.capacity is CapacityType.SPOT]
    machines = sorted({name for pool in spot for name in pool.machines})
    pages = -(-len(machines) // 20)
    entry = {"skuName": "X Spot", "productName": "X", "retailPrice": 0.03}
    first = {"Items": [{**entry, "armSkuName": machines[0]}], "NextPageLink": "https://next"}
    found, queries = asked(platform, said(first), *[said({"Items": [], "NextPageLink": None})] * pages)
    assert found == {machines[0]: exactly(0.03)}
    assert len(queries) == pages + 1
    assert queries[1][-1] == "https://next"
    assert all("--skip-authorization-header" in query for query in queries)
    (where,) = parse_qs(urlsplit(queries[0][-1]).query)["$filter"]
    assert f"armRegionName eq '{region_of(platform)}'" in where
    assert max(len(query[-1]) for query in queries) < 2000


@pytest.mark.parametrize(
    ("platform", "answer", "message"),
    [
        (gcp_platform, said({}), "got a stack of gcp"),
        (
            aws_platform,
            CommandResult(code=255, output="", errors="Unable to locate credentials"),
            "locate credentials",
        ),
        (aws_platform, CommandResult(code=0, output="<html>", errors=""), "<html>"),
    ],
)
def test_a_cloud_without_an_answer_is_named_with_what_to_do(
    platform: Callable[[], Platform], answer: CommandResult, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        asked(platform(), answer)


def problems_of(change: Callable[[Document], object]) -> list[str]:
    platform = aws_platform(change)
    return [str(each) for each in budget_problems(platform.budget, cost_of(platform))]


def test_a_budget_below_the_cost_of_full_pools_is_refused_and_names_the_dearest_pool() -> None:
    most = cost_of(aws_platform()).with_full_pools.high
    assert most is not None
    assert problems_of(lambda d: d.update(budget=most + 1)) == []
    (problem,) = problems_of(lambda d: d.update(budget=1))
    assert problem.startswith("holdfast:platform.budget: got 1 USD an hour, for a stack that costs up to")
    assert "Lower maxNodes, of a100" in problem


def test_a_budget_is_refused_while_a_price_is_unknown() -> None:
    def reserve(document: Document) -> None:
        document["budget"] = 1_000_000
        pools = list_of(document, "pools")
        pools.append(
            {"name": "h200", "capacity": "on-demand", "instanceTypes": ["p5e.48xlarge"], "maxNodes": 4}
        )

    (problem,) = problems_of(reserve)
    assert "prices that are not known: p5e.48xlarge" in problem
    assert "Declare the price of a node" in problem


def test_a_volume_costs_its_price_or_that_of_its_size_and_an_unknown_one_is_named() -> None:
    lustre: Document = {"name": "scratch", "kind": "parallel", "namespaces": ["vision"], "zone": "us-west-2a"}

    def made(**fields: JsonValue) -> Callable[[Document], object]:
        return lambda d: d.update(budget=1_000_000, storage=[{**lustre, "sizeGiB": 2400, **fields}])

    assert idle(aws_platform(made()))["volume scratch, 2400 GiB"] == "0.48"
    assert idle(aws_platform(made(throughput=500, price=1.5)))["volume scratch"] == "1.50"
    (problem,) = problems_of(made(throughput=500))
    assert "prices that are not known: volume scratch" in problem
    assert "of a volume on it, as `price`" in problem
    assert problems_of(made(throughput=500, price=1.5)) == []


def test_a_stack_above_its_budget_registers_nothing() -> None:
    cloud, document = cloud_of(aws_document(lambda d: d.update(budget=1)))
    with pytest.raises(ConfigError, match=r"holdfast:platform\.budget"):
        cloud.build(document, {"aws:region": AWS_REGION}, "aws-test", check_budget)
