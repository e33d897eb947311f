"""Markets for replays: pools with traces that say what a test is about."""

from datetime import timedelta
from typing import Final

from pulumi_holdfast.analysis.replay.ladders import Numbers, ladders
from pulumi_holdfast.analysis.replay.market import Market, PoolMarket, Workload
from pulumi_holdfast.analysis.replay.trace import Trace
from pulumi_holdfast.ladder.ladder import Policy

AT_ONCE: Final = timedelta(0)
HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
SPOT_PRICE: Final = 0.32

JOB: Final = Workload(work=48 * HOUR, restart=12 * MINUTE)


def trace(*stretches: tuple[float, int], gap: timedelta = 10 * MINUTE) -> Trace:
    """A trace of so many hours with so many instances each."""
    data = [number for hours, number in stretches for _ in range(round(hours * HOUR / gap))]
    return Trace(gap=gap, data=tuple(data))


def market(*traces: Trace, price: float = SPOT_PRICE, last: float = 1.0) -> Market:
    """Spot pools a, b, … with these traces, and on-demand."""
    spot = [
        PoolMarket(pool=f"{name}-spot", price=price, trace=each)
        for name, each in zip("abcdef", traces, strict=False)
    ]
    return Market(pools=(*spot, PoolMarket(pool="on-demand", price=last)))


def ladder(
    pools: Market,
    *,
    return_after: timedelta | None = None,
    max_failures: int = 5,
    timeout: timedelta = 15 * MINUTE,
) -> Policy:
    """A ladder over all of a market's pools."""
    numbers = Numbers(
        max_failures=[max_failures],
        procurement_timeout=[timeout],
        return_after=[return_after],
        hold_timeout=15 * MINUTE,
    )
    return ladders(pools, numbers)[0].policy


ALWAYS: Final = trace((240, 1))
