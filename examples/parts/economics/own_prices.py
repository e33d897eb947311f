"""The value of each tier of a ladder, from your own table of prices, evictions, and hours that an eviction costs."""

import csv
from pathlib import Path

from pulumi_holdfast.analysis.economics.tier_costs import PoolRates, PricedTier, advise, compare_tiers

HOURS = 40  # of the job, without failures

with (Path(__file__).parent / "prices.csv").open(encoding="utf-8") as table:
    ladder = [
        PricedTier(
            pool=row["pool"],
            rates=PoolRates(
                price=float(row["price"]),
                evictions_per_hour=float(row["evictions_per_hour"]),
                hours_per_eviction=float(row["hours_per_eviction"]),
            ),
        )
        for row in csv.DictReader(table)
    ]
for each in compare_tiers(ladder):
    rates = each.tier.rates
    line = f"{each.tier.pool:<10} {rates.cost_per_useful_hour:.3f} of on-demand"
    if each.cheapest_below is None:
        print(f"{line}, the last tier")
    elif each.is_worth_it:
        print(f"{line}, maxFailures {advise(rates, hours=HOURS).max_failures}")
    else:
        print(f"{line}, leave it out: {each.cheapest_below.pool} costs less")
