"""FallbackPolicy objects: complete, partial and invalid ones."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given

from pulumi_holdfast.kubernetes.fallback_policy import ladder_spec
from pulumi_holdfast.ladder.fallback_policy import parse_policy
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import (
    UNLIMITED,
    Failures,
    Ladder,
    MachineResources,
    NoPolicy,
    Policy,
    Tier,
    pool_there,
)
from pulumi_holdfast.ladder.reachability.pool_summary import MachineSize, PoolSummary
from pulumi_holdfast.ladder.taints import SPOT
from pulumi_holdfast.ladder.windows import CapacityWindow
from tests.support.builders.job_states import policy
from tests.support.strategies.any_json import any_json

MINUTE = timedelta(minutes=1)
TIERS: JsonValue = [{"pool": "a-spot", "maxFailures": 5, "procurementTimeout": "15m"}, {"pool": "a"}]


MISTAKES: list[tuple[Json, str, str]] = [
    ({"tiers": []}, "spec.tiers: got no tiers", "Set tiers"),
    ({"tiers": None}, "spec.tiers: got no tiers", "Set tiers"),
    ({"tiers": [{}]}, "spec.tiers[0].pool: got no pool", "Set pool"),
    (
        {"tiers": [{"pool": "a"}, {"pool": "a"}]},
        'spec.tiers[1].pool: got "a" a second time',
        "raise maxFailures",
    ),
    ({"tiers": [{"pool": "a", "maxFailures": -2}]}, "spec.tiers[0].maxFailures: got -2", "from -1"),
    ({"tiers": [{"pool": "a", "maxFailures": True}]}, "maxFailures: got True", "an integer"),
    ({"tiers": [{"pool": "a", "procurementTimeout": "15"}]}, 'procurementTimeout: got "15"', "Write 15m"),
    (
        {"tiers": [{"pool": "a", "procurementTimeout": 15}]},
        "procurementTimeout: got 15",
        "a time with its units",
    ),
    (
        {"tiers": [{"pool": "a", "cluster": "west"}, {"pool": "b"}]},
        'spec.tiers[0].cluster: got "west" on the first tier',
        "move the tier between",
    ),
    (
        {"tiers": [{"pool": "a"}, {"pool": "b", "cluster": "west"}]},
        'spec.tiers[1].cluster: got "west" on the last tier',
        "Remove cluster",
    ),
    ({"tiers": [{"pool": "west/a"}]}, 'spec.tiers[0].pool: got "west/a"', "lower-case letters"),
    ({"failures": "all"}, 'spec.failures: got "all"', "any or evictions"),
    ({"outageWindow": "0s"}, 'spec.outageWindow: got "0s"', "at least 1s"),
    ({"applicationFailures": "5"}, 'spec.applicationFailures: got "5"', "an integer"),
    (
        {"tiers": [{"pool": "a", "facts": {"capacity": "spot", "window": {"ends": "tomorrow"}}}]},
        'spec.tiers[0].facts.window.ends: got "tomorrow"',
        "Set an allowed value",
    ),
    (
        {"tiers": [{"pool": "a", "facts": {"capacity": "cheap"}}]},
        'facts.capacity: got "cheap"',
        "spot or on-demand",
    ),
    (
        {
            "tiers": [
                {"pool": "a", "facts": {"capacity": "spot", "machine": {"cpu": "lots", "memory": "1Gi"}}}
            ]
        },
        'spec.tiers[0].facts.machine.cpu: got "lots"',
        "a quantity",
    ),
]


def document(**spec: JsonValue) -> Json:
    return {"metadata": {"name": "ladder"}, "spec": {"tiers": TIERS, **spec}}


def read(**spec: JsonValue) -> Policy:
    policy = parse_policy(document(**spec))
    assert isinstance(policy, Policy)
    return policy


def problem(**spec: JsonValue) -> str:
    policy = parse_policy(document(**spec))
    assert isinstance(policy, NoPolicy)
    assert len(policy.problems) == 1
    return policy.problems[0]


def test_missing_fields_have_defaults_and_unknown_ones_are_ignored() -> None:
    first = Tier(pool="a-spot", max_failures=5, procurement_timeout=15 * MINUTE)
    assert read().tiers == (first, Tier(pool="a")), "a missing limit is no limit"
    assert read() == Policy(tiers=read().tiers), "a ladder alone is enough"
    assert read().return_after == 60 * MINUTE, "jobs return to a better tier by default"
    assert read(returnAfter="never").return_after is None, "and can be made to stay"
    assert read(cluster={"name": "elsewhere"}) == read(), "a controller may be rolled back"
    assert parse_policy(None) == NoPolicy(), "it is just not there"


def test_every_field_is_parsed() -> None:
    policy = read(
        failures="evictions",
        outageWindow="5m",
        giveUpAfter="24h",
        applicationFailures=2,
        returnAfter="4h",
        holdTimeout="10m",
        startTimeout="30m",
        deadline="48h",
        restartCost="12m",
    )
    assert policy == Policy(
        tiers=read().tiers,
        failures=Failures.EVICTIONS,
        outage_window=5 * MINUTE,
        give_up_after=timedelta(hours=24),
        application_failures=2,
        return_after=timedelta(hours=4),
        hold_timeout=10 * MINUTE,
        start_timeout=30 * MINUTE,
        deadline=timedelta(hours=48),
        restart_cost=12 * MINUTE,
    )


def test_a_tier_elsewhere_is_named_by_its_cluster_and_pool() -> None:
    away = read(tiers=[{"pool": "a-spot"}, {"pool": "a-spot", "cluster": "west"}, {"pool": "a"}]).tiers[1]

    assert (away.name, away.cluster, pool_there(away.name)) == ("west/a-spot", "west", "a-spot"), (
        "clusters may have pools of the same name"
    )


WINDOW = CapacityWindow(
    begins=datetime(2026, 12, 1, 11, 30, tzinfo=UTC), ends=datetime(2026, 12, 8, 10, 45, tzinfo=UTC)
)


def test_a_policy_written_by_a_stack_is_parsed() -> None:
    ladder = Ladder(
        tiers=(Tier(pool="a-spot", max_failures=-1, procurement_timeout=MINUTE), Tier(pool="a")),
        failures=Failures.ANY,
        application_failures=3,
        return_after=60 * MINUTE,
    )
    facts = PoolSummary(
        capacity=CapacityType.SPOT,
        labels={"holdfast.dev/pool": "a-spot"},
        taints=(SPOT,),
        machine=MachineSize(vcpus=96, memory_mib=1152, gpus=8),
        largest=MachineSize(vcpus=96, memory_mib=1152, gpus=8),
        max_nodes=4,
        window=WINDOW,
    )
    policy = parse_policy({"spec": ladder_spec(ladder, {"a-spot": facts})})
    assert isinstance(policy, Policy)
    first = policy.tiers[0]
    assert (first.max_failures, first.procurement_timeout) == (-1, MINUTE)
    assert first.facts.machine == MachineResources(cpu=96_000, memory=1152 * 2**20, gpus=8)
    assert (first.facts.taints, first.facts.max_nodes) == ((SPOT,), 4)
    assert first.facts.window == WINDOW
    assert (policy.application_failures, policy.return_after) == (3, 60 * MINUTE)


@pytest.mark.parametrize(("spec", "field", "fix"), MISTAKES)
def test_a_problem_names_its_fix(spec: Json, field: str, fix: str) -> None:
    said = problem(**dict(spec))
    assert field in said
    assert fix in said


def test_every_problem_is_reported() -> None:
    policy = parse_policy(document(failures="all", returnAfter="soon"))
    assert isinstance(policy, NoPolicy)
    assert len(policy.problems) == 2


@given(any_json("spec", "tiers", "pool", "maxFailures", "facts", "machine", "taints", "labels"))
def test_any_document_can_be_parsed(value: JsonValue) -> None:
    for found in ({"spec": value}, {"spec": {"tiers": value}}, {"spec": {"tiers": [value]}}):
        policy = parse_policy(found)
        assert isinstance(policy, Policy) or policy.problems


@pytest.mark.parametrize(
    ("max_failures", "failures", "is_spent"),
    [(3, 2, False), (3, 3, True), (3, 4, True), (1, 0, False), (1, 1, True), (0, 0, False), (0, 1, True)],
)
def test_a_tier_is_spent_at_max_failures(max_failures: int, failures: int, *, is_spent: bool) -> None:
    tier = Tier(pool="a", max_failures=max_failures)
    assert tier.is_spent(failures) is is_spent, "0 means the same as 1: a tier that is never tried is none"


@pytest.mark.parametrize("max_failures", [None, UNLIMITED])
def test_a_tier_without_a_limit_is_never_spent(max_failures: int | None) -> None:
    assert not Tier(pool="a", max_failures=max_failures).is_spent(10**9), "-1: stay"


def test_a_tier_is_found_by_its_pool() -> None:
    assert [policy().rank_of(pool) for pool in ("a-spot", "on-demand", "elsewhere")] == [0, 2, None]
