"""`holdfast cost STACK`: prints the hourly cost of a stack before it exists. Calls a cloud only with `--ask-cloud`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pulumi_holdfast.cli.cost.spot_prices import read_spot_prices
from pulumi_holdfast.cli.cost.spot_queries import ask_spot_prices, prices_to_declare
from pulumi_holdfast.clouds import pool_summaries
from pulumi_holdfast.config.loader import stack_file
from pulumi_holdfast.config.preflight import run_command
from pulumi_holdfast.cost import NO_RECORDS, budget_problems, cost_report, stack_cost
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.stack_program import load_platform

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from pulumi_holdfast.clouds import Platform
    from pulumi_holdfast.ladder.cost import StackCost
    from pulumi_holdfast.ladder.prices import CostRange


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("stack", metavar="STACK", help="a stack in stacks/, for example `aws-dev`")
    spot = parser.add_mutually_exclusive_group()
    spot.add_argument(
        "--ask-cloud",
        action="store_true",
        help="query AWS or Azure for current spot prices, with the cloud's command line",
    )
    spot.add_argument(
        "--spot-prices",
        type=Path,
        metavar="FILE",
        help="recorded spot prices: the answer of `aws ec2 describe-spot-price-history` or of Azure's retail price list",
    )


def run(parsed: argparse.Namespace) -> int:
    """Print the cost of the stack. Raises ConfigError if it may exceed the stack's budget."""
    spot = NO_RECORDS if parsed.spot_prices is None else read_spot_prices(parsed.spot_prices)
    platform = load_platform(stack_file(parsed.stack))
    if parsed.ask_cloud:
        spot = ask_spot_prices(cost_of(platform), region_of(platform), run_command, datetime.now(UTC))
    cost = cost_of(platform, spot=spot)
    for line in cost_report(cost, region_of(platform)):
        print(line)
    for line in prices_to_declare(cost, spot) if parsed.ask_cloud else ():
        print(line)
    if platform.cloud != "local" and (problems := tuple(budget_problems(platform.budget, cost))):
        raise ConfigError(problems)
    return 0


def cost_of(platform: Platform, *, spot: Mapping[str, CostRange] = NO_RECORDS) -> StackCost:
    """The cost of a stack; `spot` has recorded spot prices by machine type."""
    return stack_cost(platform, pool_summaries(platform), spot=spot)


def region_of(platform: Platform) -> str:
    """The region of a stack, as its cloud names it."""
    if platform.cloud == "local":
        return "this machine"
    return platform.location if platform.cloud == "azure" else platform.region
