"""Prices from Karpenter's metrics, judged by the text that its provider for AWS writes."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Final, cast

import pytest
from aiohttp import web

from pulumi_holdfast.controller.jobs.node_usage import used_nodes
from pulumi_holdfast.controller.loop.pools import (
    AVAILABLE_METRIC,
    PRICE_METRIC,
    OfferedPrice,
    OfferedPrices,
    Offering,
    cheapest,
    parse_offerings,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, INSTANCE_TYPE, POOL, ZONE, CapacityType
from pulumi_holdfast.ladder.ladder import DeclaredFacts
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.local.karpenter import instance_types_file
from tests.support.builders.job_states import LAST, T0, policy, tier
from tests.support.coroutines import in_event_loop
from tests.support.fakes.http_server import http_server
from tests.support.json_objects import objects

METRICS: Final = (Path(__file__).parents[3] / "fixtures/karpenter-1.14-offerings/metrics.txt").read_text(
    encoding="utf-8"
)
NAMES: Final = ("g5.12xlarge", "g6.12xlarge", "p4d.24xlarge")


def node_pool(*types: str, capacity: str = "spot", zones: tuple[str, ...] = (), pool: str = "a-spot") -> Json:
    required = {INSTANCE_TYPE: types, CAPACITY_TYPE: (capacity,), ZONE: zones}
    requirements = [
        {"key": key, "operator": "In", "values": list(values)} for key, values in required.items() if values
    ]
    labels = {POOL: pool}
    return {"spec": {"template": {"metadata": {"labels": labels}, "spec": {"requirements": requirements}}}}


def offered(**prices: float) -> dict[Offering, OfferedPrice]:
    """Spot offerings of one zone for each price; a negative one is not available."""
    return {
        Offering(name, "spot", "a"): OfferedPrice(price=abs(price), is_available=price > 0)
        for name, price in prices.items()
    }


def test_the_text_of_karpenters_provider_has_the_prices_of_what_it_offers() -> None:
    """Written by karpenter-provider-aws 1.14.1's own metrics controller, over the kwok provider's instance types."""
    machines = machine_catalogue("local")
    written = instance_types_file([machines[name] for name in NAMES], ["local-a", "local-b"])
    sold: dict[Offering, float] = {}
    for each in cast("list[Json]", json.loads(written)):
        for offering in objects(each["offerings"]):
            values = {
                str(required["key"]): str(cast("list[str]", required["values"])[0])
                for required in objects(offering["Requirements"])
            }
            key = Offering(str(each["name"]), values[CAPACITY_TYPE], values[ZONE])
            sold[key] = cast("float", offering["Price"])
    assert {key: each.price for key, each in parse_offerings(METRICS).items()} == sold


@pytest.mark.parametrize(
    ("pool", "price", "why"),
    [
        (node_pool("p4d.24xlarge"), 2.195764, "one type"),
        (node_pool("p4d.24xlarge", "g6.12xlarge"), 0.46016, "the cheapest of two"),
        (
            node_pool("p4d.24xlarge", capacity="on-demand", zones=("local-b",)),
            21.957642,
            "as it is bought, and where",
        ),
        (node_pool("p4d.24xlarge", zones=("elsewhere",)), None, "nothing is offered there"),
        (node_pool("h100"), None, "nor of this type"),
        (node_pool("p4d.24xlarge", capacity="reserved"), None, "what is reserved is paid for"),
        (node_pool(), None, "a pool that names no types may buy any"),
    ],
)
def test_the_price_of_a_pool_is_that_of_its_cheapest_offering(
    pool: Json, price: float | None, why: str
) -> None:
    assert cheapest(pool, parse_offerings(METRICS)) == price, why


def test_an_offering_that_is_sold_out_has_a_price_only_if_all_are() -> None:
    pool = node_pool("x", "y")
    assert cheapest(pool, offered(x=-1.0, y=3.0)) == 3.0
    assert cheapest(pool, offered(x=-1.0, y=-3.0)) == 1.0, "without any, what it would cost"


def test_prices_of_nothing_and_other_metrics_are_passed_over() -> None:
    labels = 'instance_type="x",capacity_type="spot",zone="a"'
    sold_out = f"{PRICE_METRIC}{{{labels}}} 2.5\n{AVAILABLE_METRIC}{{{labels}}} 0\nother_metric not a number"
    assert parse_offerings(sold_out) == offered(x=-2.5)
    assert parse_offerings(f"{PRICE_METRIC}{{{labels}}} 0") == {}
    assert parse_offerings(f"{PRICE_METRIC}{{{labels}}} NaN") == {}
    with pytest.raises(ValueError, match="could not convert"):
        parse_offerings(f"{PRICE_METRIC}{{{labels}}} much")


class Karpenter:
    """What a server of metrics answers."""

    def __init__(self) -> None:
        self.text, self.status = METRICS, 200

    async def answer(self, _: web.Request) -> web.Response:
        return web.Response(text=self.text, status=self.status)


@in_event_loop
async def test_prices_outlive_an_answer_without_any_and_expire_after_an_hour() -> None:
    now, changes, outcomes = [T0], [0], list[bool]()
    pools = [node_pool("p4d.24xlarge")]

    def count() -> None:
        changes[0] += 1

    karpenter = Karpenter()
    async with http_server(karpenter.answer) as address:
        prices = OfferedPrices(
            address, now=lambda: now[0], node_pools=lambda: pools, changed=count, read=outcomes.append
        )
        assert prices.of_pool("a-spot") is None
        await prices.refresh()
        assert (prices.of_pool("a-spot"), [*prices.samples()]) == (2.195764, [(("a-spot",), 2.195764)])
        karpenter.text = "# the replica that does not lead"
        await prices.refresh()
        karpenter.status = 503
        await prices.refresh()
        now[0] += timedelta(minutes=50)
        assert prices.of_pool("a-spot") == 2.195764
        assert (changes, outcomes) == ([1], [True, True, False])
        pools[:] = [node_pool("g6.12xlarge")]
        prices.node_pools_changed()
        assert prices.of_pool("a-spot") == 0.46016
        now[0] += timedelta(minutes=11)
        await prices.refresh()
        assert (prices.of_pool("a-spot"), changes) == (None, [2])
    unreachable = OfferedPrices("http://127.0.0.1:1/metrics", now=lambda: T0, node_pools=lambda: pools)
    await unreachable.refresh()
    assert unreachable.of_pool("a-spot") is None


@in_event_loop
async def test_a_node_has_the_price_of_its_own_offering_else_its_pools_else_the_declared_one() -> None:
    async with http_server(Karpenter().answer) as address:
        prices = OfferedPrices(address, now=lambda: T0, node_pools=lambda: [node_pool(*NAMES)])
        await prices.refresh()

    def node(instance: str, zone: str = "local-a") -> Json:
        labels = {POOL: "a-spot", CAPACITY_TYPE: "spot", INSTANCE_TYPE: instance, ZONE: zone}
        return {"metadata": {"name": instance, "labels": labels}}

    nodes = {name: node(name) for name in ("p4d.24xlarge", "retired")}
    ladder = policy(tiers=(tier(price=9.0, facts=DeclaredFacts(capacity=CapacityType.SPOT)), LAST))
    used = used_nodes([], [*nodes], nodes, ladder, price_of_node=prices.of_node)
    assert [each.kind.price for each in used] == [2.195764, 0.46016]
    declared = used_nodes([], [*nodes], nodes, ladder)
    assert {each.kind.price for each in declared} == {9.0}
