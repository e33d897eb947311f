"""Queries a cloud's current spot prices with its command line, for `holdfast cost --ask-cloud`.

On AWS any credential of the account suffices; Azure's price list needs none. Google Cloud publishes prices of vCPUs, memory
and GPUs, but not of machine types.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlencode

from pulumi_holdfast.cli.cost.spot_prices import spot_prices_of
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import mapping
from pulumi_holdfast.ladder.labels import CapacityType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from pulumi_holdfast.config.preflight import Runner
    from pulumi_holdfast.ladder.cost import StackCost
    from pulumi_holdfast.ladder.json import JsonValue
    from pulumi_holdfast.ladder.prices import CostRange

_AZURE_PRICES: Final = "https://prices.azure.com/api/retail/prices"

# The filter is a part of the address, which a server may cut at 2,000 characters.
_MACHINES_AT_ONCE: Final = 20


def ask_spot_prices(cost: StackCost, region: str, runner: Runner, now: datetime) -> Mapping[str, CostRange]:
    """Return the lowest and the highest price of each machine type of the stack's spot pools; types without one are missing.

    Raises ConfigError for a cloud without such prices, and if the cloud does not answer.
    """
    machines = sorted(
        {name for pool in cost.pools if pool.capacity is CapacityType.SPOT for name in pool.machines}
    )
    if not machines:
        return {}
    if cost.cloud == "aws":
        answers = [_answer(_aws_query(machines, region, now), runner)]
    elif cost.cloud == "azure":
        answers = list(_azure_answers(machines, region, runner))
    else:
        raise ConfigError.of(
            field="--ask-cloud",
            value=f"a stack of {cost.cloud}",
            allowed="a stack of aws or azure, whose clouds publish spot prices of machine types",
            fix="Leave it out, and declare `price` on the tiers from the cloud's price list.",
        )
    return spot_prices_of(answers)


def prices_to_declare(cost: StackCost, asked: Mapping[str, CostRange]) -> Iterator[str]:
    """The lines with the `price` to declare on tiers: the price of the cheapest machine type of each spot pool."""
    yield "Current spot prices, which the tiers of these pools may declare as `price`:"
    for pool in cost.pools:
        if pool.capacity is CapacityType.SPOT:
            prices = [(asked[name].low or 0.0, name) for name in pool.machines if name in asked]
            cheapest = "{:.4g} ({})".format(*min(prices)) if prices else "no price"
            yield f"  {pool.name}: {cheapest}"


def _aws_query(machines: Sequence[str], region: str, now: datetime) -> tuple[str, ...]:
    # From now on: the price that holds in each zone, and no history.
    return (
        *("aws", "ec2", "describe-spot-price-history", "--region", region, "--output", "json"),
        *("--product-descriptions", "Linux/UNIX", "--start-time", f"{now:%Y-%m-%dT%H:%M:%SZ}"),
        *("--instance-types", *machines),
    )


def _azure_answers(machines: Sequence[str], region: str, runner: Runner) -> Iterator[JsonValue]:
    for first in range(0, len(machines), _MACHINES_AT_ONCE):
        names = " or ".join(f"armSkuName eq '{name}'" for name in machines[first : first + _MACHINES_AT_ONCE])
        where = f"serviceName eq 'Virtual Machines' and priceType eq 'Consumption' and armRegionName eq '{region}' and ({names})"
        url: JsonValue = f"{_AZURE_PRICES}?{urlencode({'$filter': where})}"
        while isinstance(url, str) and url:
            answer = _answer(
                ("az", "rest", "--method", "get", "--skip-authorization-header", "--url", url), runner
            )
            yield answer
            url = mapping(answer).get("NextPageLink")


def _answer(query: tuple[str, ...], runner: Runner) -> JsonValue:
    answer = runner(query)
    if answer.code == 0:
        try:
            return cast("JsonValue", json.loads(answer.output))
        except ValueError:
            pass
    raise ConfigError.of(
        field="--ask-cloud",
        value=" ".join((answer.errors or answer.output).split()) or "no answer",
        allowed=f"an answer of `{' '.join(query[:3])}`",
        fix="Log in to the cloud, or save its answer to a file for --spot-prices.",
    )
