"""What a replay pays is within the estimate of a gang's cost, on every trace, ladder and price."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.analysis.replay.market import Market, PoolMarket, Workload
from pulumi_holdfast.analysis.replay.replay import replay
from pulumi_holdfast.analysis.replay.trace import SyntheticMarket, synthetic_trace
from pulumi_holdfast.ladder.cost import gang_cost
from pulumi_holdfast.ladder.prices import CostRange
from tests.support.markets import AT_ONCE, HOUR, MINUTE, ladder
from tests.support.soak import sized

WEATHER = SyntheticMarket(
    instances=8, there=3 * HOUR, gone=1 * HOUR, gap=10 * MINUTE, length=timedelta(days=10)
)


@settings(max_examples=sized(25, soak=1000))
@given(
    seeds=st.lists(st.integers(0, 10_000), min_size=1, max_size=3),
    shares=st.lists(st.floats(0, 1), min_size=4, max_size=4),
    lists=st.lists(st.floats(0.2, 100), min_size=4, max_size=4),
    nodes=st.integers(1, 8),
    returns=st.sampled_from([None, HOUR, 4 * HOUR]),
    boot=st.sampled_from([AT_ONCE, 6 * MINUTE]),
    start=st.integers(0, 200),
)
def test_replay_pays_within_the_range_of_the_gang(
    seeds: list[int],
    shares: list[float],
    lists: list[float],
    nodes: int,
    returns: timedelta | None,
    boot: timedelta,
    start: int,
) -> None:
    # Spot costs anything from a tenth of the list price to the list price; the last tier costs the list price.
    spot = [CostRange(low=price * 0.1, high=price) for price in lists[: len(seeds)]]
    last = CostRange(low=lists[3], high=lists[3])
    drawn = [
        low + share * (high - low) for (low, high), share in zip(map(_bounds, spot), shares, strict=False)
    ]
    market = Market(
        pools=(
            *(
                PoolMarket(pool=f"spot-{place}", price=price, trace=synthetic_trace(WEATHER, seed))
                for place, (seed, price) in enumerate(zip(seeds, drawn, strict=True))
            ),
            PoolMarket(pool="on-demand", price=lists[3]),
        )
    )
    job = Workload(work=30 * HOUR, nodes=nodes, restart=12 * MINUTE, boot=boot, grace=2 * MINUTE)
    found = replay(job, market, ladder(market, return_after=returns), start * HOUR)
    paid = found.cost * nodes * (job.undisturbed / HOUR)
    costs = [*spot, last]
    gang = gang_cost([each.times(nodes) for each in costs])
    assert gang.high is not None
    assert paid <= gang.high * found.hours * (1 + 1e-9)
    if found.is_finished:
        cheapest = min(_bounds(each)[0] for each in costs)
        assert paid >= cheapest * nodes * (job.work / HOUR) * (1 - 1e-9)


def _bounds(cost: CostRange) -> tuple[float, float]:
    assert cost.low is not None
    assert cost.high is not None
    return cost.low, cost.high
