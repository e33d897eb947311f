"""What another cluster has never decides whether jobs arrive at home, and stored facts prove nothing wrong that holds."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.config.reachability import pool_facts
from pulumi_holdfast.controller.jobs.judgement import job_shapes
from pulumi_holdfast.kubernetes.fallback_policy import facts_object, ladder_spec
from pulumi_holdfast.ladder.json import UNKNOWN, Json
from pulumi_holdfast.ladder.reachability.checks import Failed, check_pool
from pulumi_holdfast.ladder.reachability.facts import (
    Exported,
    TierFacts,
    read_exported,
    read_pool_facts,
    read_tiers,
)
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary
from pulumi_holdfast.ladder.reachability.walk import Outcome, walk_together
from tests.support.strategies.admitted_jobs import KnownLadder, facts, known_ladders, walking_jobs

EXPORTS = st.sampled_from(
    (None, UNKNOWN, Exported(stack="s", ladder=None), Exported(stack="s", ladder=("a100", "cpu")))
)


@settings(max_examples=30)
@given(
    known=known_ladders(), job=walking_jobs("vision"), there=facts("far"), exported=EXPORTS, data=st.data()
)
def test_tiers_elsewhere_change_no_outcome_whatever_is_known_of_them(
    known: KnownLadder, job: Json, there: PoolSummary, exported: Exported | None, data: st.DataObject
) -> None:
    shapes = job_shapes(job)
    tiers = [
        replace(
            tier, exported=exported, node_pools=data.draw(st.sampled_from(((), (pool_facts("far", there),))))
        )
        if tier.cluster
        else tier
        for tier in read_tiers({"spec": ladder_spec(known.ladder, known.pools)})
    ]
    alone = [tier for tier in tiers if not tier.cluster]
    assert walk_together(shapes, tiers).outcome is walk_together(shapes, alone).outcome


@settings(max_examples=30)
@given(job=walking_jobs("vision"), there=facts("far"))
def test_ladder_whose_last_tier_is_elsewhere_is_never_proved(job: Json, there: PoolSummary) -> None:
    last = TierFacts(number=1, pool="far", cluster="west", node_pools=(pool_facts("far", there),))
    assert walk_together(job_shapes(job), [last]).outcome is Outcome.FALLS_OFF


@settings(max_examples=30)
@given(job=walking_jobs("vision"), pool=facts("a100"))
def test_stored_facts_reject_no_job_that_the_pool_itself_takes(job: Json, pool: PoolSummary) -> None:
    stored = read_pool_facts("a100", facts_object(pool))
    for shape in job_shapes(job):
        by_stored = {each.check for each in check_pool(shape, stored) if isinstance(each, Failed)}
        by_pool = {
            each.check for each in check_pool(shape, pool_facts("a100", pool)) if isinstance(each, Failed)
        }
        assert not by_stored or by_pool, f"{by_stored}: a check that holds is not broken by what is left out"
    if pool.machine_capacities:
        assert stored.machines is not UNKNOWN
        assert {each.allocatable.gpus for each in stored.machines} <= {
            each.allocatable.gpus for each in pool.machine_capacities
        }


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda each: st.lists(each, max_size=2) | st.dictionaries(st.text(max_size=3), each, max_size=2),
    max_leaves=4,
)
FIELDS = ("capacity", "labels", "labelValues", "machines", "maxNodes", "ladder", "stack", "checkpoints")


@settings(max_examples=30)
@given(
    st.dictionaries(
        st.sampled_from(FIELDS),
        JSON | st.lists(st.dictionaries(st.sampled_from(("cpu", "memory", "gpus", "pods", "devices")), JSON)),
    ),
    walking_jobs("vision"),
)
def test_facts_of_any_export_are_read(document: Json, job: Json) -> None:
    found = read_pool_facts("far", document)
    for shape in job_shapes(job):
        assert list(check_pool(shape, found)) is not None
    assert (read_exported(document) is None) is not bool(document)
