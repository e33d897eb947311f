"""`holdfast replay`: what a ladder would have cost on recorded availability."""

from __future__ import annotations

import argparse
import math
from argparse import Namespace
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.analysis.command_line import print_answer
from pulumi_holdfast.analysis.replay.comparison import compare
from pulumi_holdfast.analysis.replay.deadline_report import (
    deadline_document,
    deadline_picture,
    deadline_report,
)
from pulumi_holdfast.analysis.replay.deadlines import compare_deadlines, separately
from pulumi_holdfast.analysis.replay.ladders import NamedPolicy, Numbers, ladders, read_ladder
from pulumi_holdfast.analysis.replay.market import Block, Market, PoolMarket, Workload
from pulumi_holdfast.analysis.replay.reports import comparison_document, comparison_report, rates_report
from pulumi_holdfast.analysis.replay.trace import (
    SyntheticMarket,
    rates,
    read_trace,
    synthetic_trace,
    write_trace,
)
from pulumi_holdfast.ladder.ladder import MOST_FAILURES, UNLIMITED
from pulumi_holdfast.ladder.quantities import DurationError, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# A ladder without failback costs too much to compare a deadline with.
_RETURN_AFTER: Final = timedelta(hours=1)

_POOL: Final = "POOL:PRICE[:TRACE|:BEGIN..END]"


@dataclass(frozen=True, kw_only=True)
class PoolArgument:
    """One pool of the command line: its name, price, and trace file or reserved block."""

    pool: str
    price: float
    trace: Path | None
    block: Block | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands `run`, `rates` and `synthetic`."""
    parser.description = (
        "Calculate what a ladder would have cost on recorded availability, with the controller's own decisions. "
        'A trace is one file per pool: {"metadata": {"gap_seconds": 300}, "data": [instances available per tick]}, '
        'and may have "prices": [of an instance per tick].'
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_run(
        commands.add_parser(
            "run", help="compare ladders with on-demand, with staying on spot, and with hindsight"
        )
    )
    rates = commands.add_parser("rates", help="evictions per hour and waits in a trace")
    rates.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    rates.add_argument("--nodes", type=int, default=1, metavar="N", help="instances at once (default: 1)")
    _add_synthetic(commands.add_parser("synthetic", help="make a trace from a seed"))


def pool(text: str) -> PoolArgument:
    """Read `a100-spot:0.32:traces/a100.json`. Raises argparse's error for anything else."""
    name, _, rest = text.partition(":")
    price, _, capacity = rest.partition(":")
    begins, dots, ends = capacity.partition("..")
    try:
        block = Block(begins=duration_or_none(begins), ends=duration(ends)) if dots and begins else None
        trace = Path(capacity) if capacity and block is None else None
        return PoolArgument(pool=_named(name), price=float(price), trace=trace, block=block)
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise argparse.ArgumentTypeError(
            f'"{text}": allowed: {_POOL}, such as a100-spot:0.32:traces/a100.json, a100-block:0.7:6h..54h or a100:1'
        ) from error


def duration(text: str) -> timedelta:
    """Read `12m`. Raises argparse's error for anything else."""
    try:
        return parse_duration(text)
    except DurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def duration_or_none(text: str) -> timedelta:
    """Read `12m`, or `0` for no time at all. Raises argparse's error for anything else."""
    return timedelta(0) if text == "0" else duration(text)


def duration_or_never(text: str) -> timedelta | None:
    """Read `12m`, or `never`. Raises argparse's error for anything else."""
    try:
        return None if text == "never" else duration(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error} Or never.") from error


def price(text: str) -> float:
    """Read a price. Raises argparse's error for anything else."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f'"{text}": allowed: a number above 0, such as 0.45')
    return number


def data(text: str) -> tuple[str, float]:
    """Read `west=0.25`, what the data of a start on a pool costs. Raises argparse's error for anything else."""
    pool, _, hours = text.partition("=")
    try:
        return _named(pool), float(hours)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'"{text}": allowed: POOL=HOURS, such as west=0.25') from error


def failures(text: str) -> int:
    """Read a `maxFailures`. Raises argparse's error for anything else."""
    number = int(text) if text.lstrip("-").isdecimal() and len(text) < 9 else None
    if number is None or not UNLIMITED <= number <= MOST_FAILURES:
        raise argparse.ArgumentTypeError(
            f'"{text}": allowed: a whole number from 0 to {MOST_FAILURES}, or {UNLIMITED} for no limit'
        )
    return number


def _add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "pools",
        nargs="+",
        type=pool,
        metavar=_POOL,
        help="the ladder, first tier first; a pool with neither trace nor block always has capacity",
    )
    command.add_argument("--work", type=duration, metavar="TIME", help="of training", required=True)
    command.add_argument("--nodes", type=int, default=1, metavar="N", help="instances at once (default: 1)")
    for name, what in (
        ("--restart", "until the first new step, at each start"),
        ("--boot", "of an instance"),
        ("--grace", "until pods have ended, at a move"),
    ):
        command.add_argument(
            name, type=duration_or_none, default=timedelta(0), metavar="TIME", help=f"{what} (default: 0)"
        )
    command.add_argument(
        "--checkpoint-every",
        type=duration,
        metavar="TIME",
        help="an eviction loses the work since the last one (default: a checkpoint is written at the notice)",
    )
    command.add_argument(
        "--on-demand-price",
        type=price,
        metavar="PRICE",
        help="of an instance per hour; `prices` of traces, in that currency, then count instead of a pool's PRICE",
    )
    command.add_argument(
        "--data",
        nargs="+",
        type=data,
        default=(),
        metavar="POOL=HOURS",
        help="on-demand hours that the data of each start on a pool in another region costs (`economics elsewhere`)",
    )
    _add_ladder(command.add_argument_group("the ladder", "several values: a row for each combination"))
    command.add_argument(
        "--starts", type=int, default=20, metavar="N", help="spread over the traces (default: 20)"
    )
    command.add_argument(
        "--within",
        type=duration,
        metavar="TIME",
        help="hindsight must finish in this time; jobs that take longer are late",
    )
    command.add_argument(
        "--finish-within",
        nargs="+",
        type=duration,
        metavar="TIME",
        help="compare the ladder paced to these deadlines with Uniform Progress, the greedy rule and hindsight",
    )
    command.add_argument(
        "--each-pool",
        action="store_true",
        help="with --finish-within: each pool with a trace above those without, and the mean of all",
    )
    command.add_argument("--png", type=Path, metavar="FILE", help="with --finish-within: also as a picture")
    command.add_argument("--json", action="store_true", help="print every replay as JSON")


def _add_ladder(numbers: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage] - the type of what add_argument_group returns
    # Without defaults: what was given must be known, since a policy has its own. argparse names its groups' class
    # privately alone.
    numbers.add_argument("--max-failures", nargs="+", type=failures, metavar="N", help="(default: 5)")
    for name, default in (("--procurement-timeout", "15m"), ("--return-after", "never")):
        numbers.add_argument(
            name, nargs="+", type=duration_or_never, metavar="TIME", help=f"or never (default: {default})"
        )
    numbers.add_argument(
        "--hold-timeout", type=duration, metavar="TIME", help="for a better tier's capacity (default: 15m)"
    )
    numbers.add_argument(
        "--deadline", type=duration, metavar="TIME", help="the FallbackPolicy's (default: none)"
    )
    numbers.add_argument(
        "--max-price",
        type=price,
        metavar="PRICE",
        help="maxPrice of the tiers above the last, in the currency of --on-demand-price (default: none)",
    )
    numbers.add_argument(
        "--policy", type=Path, metavar="FILE", help="a FallbackPolicy in place of these numbers"
    )


def _add_synthetic(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", type=Path, metavar="FILE")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="(default: 0)")
    command.add_argument("--instances", type=int, default=1, metavar="N", help="at most (default: 1)")
    for name, what, default in (
        ("--there", "mean time with all of them", "6h"),
        ("--gone", "mean time with too few", "2h"),
        ("--gap", "between ticks", "5m"),
        ("--length", "of the trace", "720h"),
    ):
        command.add_argument(
            name,
            type=duration,
            default=duration(default),
            metavar="TIME",
            help=f"{what} (default: {default})",
        )


def _named(name: str) -> str:
    if not name:
        raise ValueError("no name")
    return name


def run(parsed: Namespace) -> int:
    """Print the answer and return 0; print an error and return 1 if a value is not valid."""
    return print_answer(ANSWERS[parsed.command], parsed)


def _run(parsed: Namespace) -> str:
    job = Workload(
        work=parsed.work,
        nodes=parsed.nodes,
        restart=parsed.restart,
        boot=parsed.boot,
        grace=parsed.grace,
        checkpoint_every=parsed.checkpoint_every,
    )
    costs, pools = dict(parsed.data), [each.pool for each in parsed.pools]
    if unknown := costs.keys() - {*pools}:
        raise ValueError(f"--data: got {', '.join(sorted(unknown))}; allowed: {', '.join(pools)}")
    market = Market(
        pools=tuple(
            PoolMarket(
                pool=each.pool,
                price=each.price,
                trace=read_trace(each.trace).relative_to(parsed.on_demand_price) if each.trace else None,
                block=each.block,
                data_per_start=costs.get(each.pool, 0.0),
            )
            for each in parsed.pools
        )
    )
    if parsed.finish_within is not None:
        return _run_deadlines(parsed, job, market)
    if parsed.each_pool or parsed.png is not None:
        raise ValueError("--each-pool, --png: allowed with --finish-within only; add it, or leave them out")
    comparison = compare(job, market, _policies(parsed, market), starts=parsed.starts, within=parsed.within)
    return comparison_document(comparison) if parsed.json else comparison_report(comparison)


def _run_deadlines(parsed: Namespace, job: Workload, market: Market) -> str:
    if parsed.within is not None:
        raise ValueError(
            "--within: not allowed beside --finish-within, which is a time for hindsight too; leave it out"
        )
    if parsed.data:
        raise ValueError(
            "--data: not allowed beside --finish-within, whose other rules do not count it; leave it out"
        )
    if parsed.return_after is None and parsed.policy is None:
        parsed.return_after = [_RETURN_AFTER]
    markets = separately(market) if parsed.each_pool else (market,)
    comparison = compare_deadlines(
        job,
        [(each, _policies(parsed, each)) for each in markets],
        starts=parsed.starts,
        within=parsed.finish_within,
        hold_timeout=parsed.hold_timeout,
    )
    printed = deadline_document(comparison) if parsed.json else deadline_report(comparison)
    if parsed.png is None:
        return printed
    deadline_picture(comparison, parsed.png)
    return printed if parsed.json else f"{printed}\n\nwritten: {parsed.png}"


def _policies(parsed: Namespace, market: Market) -> tuple[NamedPolicy, ...]:
    given = [name for name in LADDER if getattr(parsed, name) is not None]
    if parsed.policy is None:
        numbers = Numbers(**{name: getattr(parsed, name) for name in given})
        return ladders(market, _with_relative_limit(numbers, parsed.on_demand_price))
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(f"--policy: {parsed.policy} has numbers of its own; leave out {options}")
    return (read_ladder(parsed.policy, market, parsed.on_demand_price),)


def _with_relative_limit(numbers: Numbers, on_demand_price: float | None) -> Numbers:
    if numbers.max_price is None:
        return numbers
    if on_demand_price is None:
        raise ValueError(
            "--max-price: it has no prices to be compared with; set --on-demand-price, and give a tier a trace with prices"
        )
    return replace(numbers, max_price=numbers.max_price / on_demand_price)


def _rates(parsed: Namespace) -> str:
    if parsed.nodes < 1:
        raise ValueError(f"nodes: got {parsed.nodes}; allowed: 1 or more")
    return rates_report(
        [(path, rates(read_trace(path), parsed.nodes)) for path in parsed.traces], parsed.nodes
    )


def _synthetic(parsed: Namespace) -> str:
    weather = SyntheticMarket(
        instances=parsed.instances, there=parsed.there, gone=parsed.gone, gap=parsed.gap, length=parsed.length
    )
    trace = synthetic_trace(weather, parsed.seed)
    write_trace(trace, parsed.file)
    return f"written: {parsed.file}, {len(trace.data)} ticks"


#: The numbers of a ladder that can be given, by their names in `Numbers`.
LADDER = tuple(field.name for field in fields(Numbers))

ANSWERS: Mapping[str, Callable[[Namespace], str]] = {"run": _run, "rates": _rates, "synthetic": _synthetic}
