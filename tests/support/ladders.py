"""A ladder with everything in it that one can have, what is known of its first pool, and what walks it."""

from datetime import timedelta

from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import UNLIMITED, Failures, Ladder, Tier
from pulumi_holdfast.ladder.machines import Machine
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.reachability.pool_summary import summarize_pool
from pulumi_holdfast.ladder.reachability.shape import Resources, Shape

TIERS = (
    Tier(
        pool="a100-spot", max_failures=5, procurement_timeout=timedelta(minutes=90), price=9.5, max_price=15.0
    ),
    Tier(pool="h100-spot", procurement_timeout=timedelta(seconds=45)),
    Tier(pool="a100"),
)
SETTINGS = Ladder(
    tiers=TIERS,
    failures=Failures.EVICTIONS,
    outage_window=timedelta(minutes=3),
    give_up_after=timedelta(hours=24),
    application_failures=UNLIMITED,
    failure_window=timedelta(hours=24),
    return_after=timedelta(hours=4),
    hold_timeout=timedelta(minutes=10),
    start_timeout=timedelta(minutes=30),
    deadline=timedelta(hours=48),
    restart_cost=timedelta(minutes=12),
)
A100_SPOT = Pool(name="a100-spot", capacity=CapacityType.SPOT, has_gpus=True, max_nodes=8)
MACHINES = (
    Machine(name="large", vcpus=96, memory_mib=1_179_648, gpus=8, hourly_price=32.0),
    Machine(name="larger", vcpus=128, memory_mib=1_000_000, gpus=8, hourly_price=40.0),
)
FACTS = summarize_pool(A100_SPOT, MACHINES, A100_SPOT.taints, {"disk": "fast"})
SHAPES = (
    Shape(
        name="finetune",
        pods=4,
        requests=Resources(cpu_millis=48_000, memory_mib=512 * 1024, gpus=8),
        accelerator="a100",
    ),
    Shape(name="fit", requests=Resources(cpu_millis=500, memory_mib=1500)),
)
