"""`python -m holdfast.analysis.replay COMMAND` answers what a ladder would have cost on recorded availability."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import TYPE_CHECKING

from holdfast.analysis.command_line import answered
from holdfast.analysis.replay.arguments import parser
from holdfast.analysis.replay.comparison import compare
from holdfast.analysis.replay.document import comparison_document
from holdfast.analysis.replay.ladders import Numbers, ladders, read_ladder
from holdfast.analysis.replay.market import Market, PoolMarket
from holdfast.analysis.replay.reports import comparison_report, rates_report
from holdfast.analysis.replay.synthetic import Weather, synthetic_trace
from holdfast.analysis.replay.trace import rates
from holdfast.analysis.replay.trace_file import read_trace, write_trace
from holdfast.analysis.replay.workload import Workload

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping

    from holdfast.analysis.replay.ladders import NamedPolicy


def main(arguments: list[str] | None = None) -> int:
    """Print one answer; 1 and a sentence where there is none."""
    return answered(parser(), ANSWERS, arguments)


def _run(asked: Namespace) -> str:
    job = Workload(
        work=asked.work,
        nodes=asked.nodes,
        restart=asked.restart,
        boot=asked.boot,
        grace=asked.grace,
        checkpoint_every=asked.checkpoint_every,
    )
    market = Market(
        pools=tuple(
            PoolMarket(pool=each.pool, price=each.price, trace=read_trace(each.trace) if each.trace else None)
            for each in asked.pools
        )
    )
    comparison = compare(job, market, _policies(asked, market), starts=asked.starts, within=asked.within)
    return comparison_document(comparison) if asked.json else comparison_report(comparison)


def _policies(asked: Namespace, market: Market) -> tuple[NamedPolicy, ...]:
    given = [name for name in LADDER if getattr(asked, name) is not None]
    if asked.policy is None:
        return ladders(market, Numbers(**{name: getattr(asked, name) for name in given}))
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(f"--policy: {asked.policy} has numbers of its own; leave out {options}")
    return (read_ladder(asked.policy, market),)


def _rates(asked: Namespace) -> str:
    if asked.nodes < 1:
        raise ValueError(f"nodes: got {asked.nodes}; allowed: 1 or more")
    return rates_report([(path, rates(read_trace(path), asked.nodes)) for path in asked.traces], asked.nodes)


def _synthetic(asked: Namespace) -> str:
    weather = Weather(
        instances=asked.instances, there=asked.there, gone=asked.gone, gap=asked.gap, length=asked.length
    )
    trace = synthetic_trace(weather, asked.seed)
    write_trace(trace, asked.file)
    return f"written: {asked.file}, {len(trace.data)} ticks"


#: The numbers of a ladder that can be given, by their names in `Numbers`.
LADDER = tuple(field.name for field in fields(Numbers))

ANSWERS: Mapping[str, Callable[[Namespace], str]] = {"run": _run, "rates": _rates, "synthetic": _synthetic}


if __name__ == "__main__":
    sys.exit(main())
