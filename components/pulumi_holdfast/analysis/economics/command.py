"""`holdfast economics`: what spot saves, and what the numbers of a ladder should be."""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from pulumi_holdfast.analysis.command_line import print_answer
from pulumi_holdfast.analysis.economics import reports
from pulumi_holdfast.analysis.economics.checkpoint_interval import Checkpointing
from pulumi_holdfast.analysis.economics.cost_model import SOURCE_SPOT_PRICE, MixedJob
from pulumi_holdfast.analysis.economics.curves import as_picture, as_text, saving_curve, tolerance_curve
from pulumi_holdfast.analysis.economics.data_transfer import (
    HOMES,
    RemoteTier,
    default_price,
    price_source,
    remote_report,
)
from pulumi_holdfast.analysis.economics.reserved_capacity import ReservedBlock, reserved_report
from pulumi_holdfast.analysis.economics.tier_costs import PoolRates, PricedTier, advise, compare_tiers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TIER = "POOL:PRICE[:EVICTIONS_PER_HOUR:HOURS_PER_EVICTION]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands. Each but `source` and `curves` needs your own numbers; prices are relative to on-demand."""
    parser.description = (
        "Calculate the savings of training on spot, and the settings of a ladder. "
        "Prices are relative: on-demand is 1."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("source", help="the table and the worked example of the source, with its errors")
    _add_job(commands.add_parser("cost", help="cost of a job that runs partly on spot, as a range"))
    ladder = commands.add_parser(
        "ladder", help="what each tier costs, and up to which rate of evictions it is worth it"
    )
    ladder.add_argument(
        "tiers", nargs="+", type=tier, metavar=_TIER, help="first tier first; the last one on-demand"
    )
    failures = commands.add_parser("max-failures", help="what maxFailures of a spot tier should be")
    _number(failures, "--hours", "of training")
    _number(failures, "--spot-price", "where on-demand is 1")
    _number(failures, "--evictions-per-hour", "of the job, not of a node")
    _number(failures, "--hours-per-eviction", "restart, wait and repeated steps in total")
    _number(failures, "--slack-hours", "how much later the job may end (default: no limit)", required=False)
    checkpoints = commands.add_parser("checkpoints", help="how often to checkpoint")
    _number(checkpoints, "--size-gib", "of one checkpoint, all pods together")
    _number(checkpoints, "--gib-per-second", "at which all pods together write")
    _number(
        checkpoints,
        "--notice-seconds",
        "that pods actually get: 120 on EC2, 25 on GKE, often under 10 on AKS",
    )
    _number(checkpoints, "--evictions-per-hour", "of the job, not of a node")
    _number(checkpoints, "--losses-without-notice-per-hour", "crashes, vanished nodes", default=0.0)
    reserved = commands.add_parser("reserved", help="from how much use a reservation pays")
    _number(reserved, "--price", "of an hour, where on-demand is 1")
    _number(reserved, "--hours", "that are reserved")
    _number(reserved, "--used-hours", "of them that train")
    _number(reserved, "--otherwise", "what an hour of training costs on the tiers below", default=1.0)
    elsewhere = commands.add_parser(
        "elsewhere", help="what checkpoints cost on a tier in another region, and from how long it pays"
    )
    _number(elsewhere, "--size-gib", "of one checkpoint, all pods together")
    _number(elsewhere, "--checkpoints-per-hour", "that are written there")
    _number(elsewhere, "--on-demand-price", "in USD an hour, of all machines of the job")
    _number(elsewhere, "--spot-price", "there, where on-demand is 1")
    _number(elsewhere, "--evictions-per-hour", "there, of the job, not of a node", default=0.0)
    _number(elsewhere, "--hours-per-eviction", "restart, wait and repeated steps in total", default=0.0)
    _number(elsewhere, "--otherwise", "what an hour of training costs on the tiers below", default=1.0)
    elsewhere.add_argument(
        "--home", choices=HOMES, default="aws", help="the cloud of the job's home (default: aws)"
    )
    _number(elsewhere, "--price-per-gib", f"of data, in USD; by default {price_source()}", required=False)
    curves = commands.add_parser("curves", help="draw savings and tolerated delay over the share on spot")
    _add_job(curves, hours=5.0, failures=5.0, hours_per_failure=0.2)
    curves.add_argument("--png", type=Path, metavar="FILE", help="also as a picture")


def tier(text: str) -> PricedTier:
    """Read `a100-spot:0.32:0.05:0.2`. Raises argparse's error for anything else."""
    pool, *numbers = text.split(":")
    if not pool or len(numbers) not in {1, 3}:
        raise argparse.ArgumentTypeError(
            f'"{text}": allowed: {_TIER}, such as a100-spot:0.32:0.05:0.2 or a100:1'
        )
    try:
        price, rate, added = (float(number) for number in [*numbers, "0", "0"][:3])
        rates = PoolRates(price=price, evictions_per_hour=rate, hours_per_eviction=added)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'"{text}": {error}') from error
    return PricedTier(pool=pool, rates=rates)


def _add_job(
    command: argparse.ArgumentParser,
    *,
    hours: float | None = None,
    failures: float | None = None,
    hours_per_failure: float | None = None,
) -> None:
    _number(command, "--hours", "without failures, on on-demand", default=hours)
    if command.prog.endswith("cost"):
        _number(command, "--spot-share", "of the job, 0 to 1")
    _number(command, "--failures", "during the job", default=failures)
    _number(command, "--hours-per-failure", "added by each failure", default=hours_per_failure)
    _number(command, "--spot-price", "where on-demand is 1", default=SOURCE_SPOT_PRICE)


def _number(
    command: argparse.ArgumentParser,
    name: str,
    what: str,
    *,
    default: float | None = None,
    required: bool = True,
) -> None:
    shown = what if default is None else f"{what} (default: {default:g})"
    command.add_argument(
        name, type=float, metavar="X", help=shown, default=default, required=required and default is None
    )


def run(parsed: Namespace) -> int:
    """Print the answer and return 0; print an error and return 1 if a number is not valid."""
    return print_answer(ANSWERS[parsed.command], parsed)


def _cost(parsed: Namespace) -> str:
    return reports.cost_report(_job(parsed, parsed.spot_share))


def _max_failures(parsed: Namespace) -> str:
    return reports.advice_report(advise(_rates(parsed), hours=parsed.hours, slack_hours=parsed.slack_hours))


def _rates(parsed: Namespace) -> PoolRates:
    return PoolRates(
        price=parsed.spot_price,
        evictions_per_hour=parsed.evictions_per_hour,
        hours_per_eviction=parsed.hours_per_eviction,
    )


def _checkpoints(parsed: Namespace) -> str:
    return reports.checkpoint_report(
        Checkpointing(
            size_gib=parsed.size_gib,
            gib_per_second=parsed.gib_per_second,
            notice_seconds=parsed.notice_seconds,
            evictions_per_hour=parsed.evictions_per_hour,
            losses_without_notice_per_hour=parsed.losses_without_notice_per_hour,
        )
    )


def _reserved(parsed: Namespace) -> str:
    return reserved_report(
        ReservedBlock(
            price=parsed.price, hours=parsed.hours, used_hours=parsed.used_hours, otherwise=parsed.otherwise
        )
    )


def _elsewhere(parsed: Namespace) -> str:
    return remote_report(
        RemoteTier(
            rates=_rates(parsed),
            size_gib=parsed.size_gib,
            checkpoints_per_hour=parsed.checkpoints_per_hour,
            on_demand_price=parsed.on_demand_price,
            price_per_gib=default_price(parsed.home)
            if parsed.price_per_gib is None
            else parsed.price_per_gib,
            otherwise=parsed.otherwise,
        )
    )


def _curves(parsed: Namespace) -> str:
    curves = (saving_curve(_job(parsed, 0.0)), tolerance_curve(parsed.spot_price))
    drawn = "\n\n".join(as_text(curve) for curve in curves)
    if parsed.png is None:
        return drawn
    as_picture(curves, parsed.png)
    return f"{drawn}\n\nwritten: {parsed.png}"


def _job(parsed: Namespace, spot_share: float) -> MixedJob:
    return MixedJob(
        hours=parsed.hours,
        spot_share=spot_share,
        failures=parsed.failures,
        hours_per_failure=parsed.hours_per_failure,
        spot_price=parsed.spot_price,
    )


ANSWERS: Mapping[str, Callable[[Namespace], str]] = {
    "source": lambda _: reports.source_report(),
    "cost": _cost,
    "ladder": lambda parsed: reports.ladder_report(compare_tiers(parsed.tiers)),
    "max-failures": _max_failures,
    "checkpoints": _checkpoints,
    "reserved": _reserved,
    "elsewhere": _elsewhere,
    "curves": _curves,
}
