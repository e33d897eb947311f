"""Whatever a job's annotations record, its job moves within its own ladder, and no other job waits for it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.actions import CreatePlaceholders, Resume, Suspend
from pulumi_holdfast.controller.jobs.caches import POD_LABELS
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.pod_shapes import gang_size
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import FailbackAttempt, FailbackStage, JobState, Phase, Purpose
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import POOL, STATE, SUSPENDED_FOR
from tests.support.builders.caches import observer_of, training_caches
from tests.support.builders.fallback_objects import (
    NOW,
    UID,
    condition,
    jobset,
    node,
    replicated_job,
    with_metadata,
    worker,
)
from tests.support.clusters.reconciler import policy

LADDER: Final = {"spot-a", "spot-b", "on-demand"}
POOLS: Final = st.sampled_from(("spot-a", "on-demand", "a100", "west/a100", ""))
TIMES: Final = st.sampled_from([NOW + timedelta(hours=each) for each in (-10_000, -2, 0, 1)])
ATTEMPTS: Final = st.builds(
    FailbackAttempt,
    pool=POOLS,
    stage=st.sampled_from(FailbackStage),
    since=TIMES,
    requested_at=st.none() | TIMES,
)
STATES: Final = st.builds(
    JobState,
    uid=st.just(UID),
    phase=st.sampled_from(Phase),
    pool=POOLS,
    rank=st.integers(0, 15),
    since=TIMES,
    waiting_since=st.none() | TIMES,
    purpose=st.none() | st.sampled_from(Purpose),
    suspended_at=st.none() | TIMES,
    resume_at=st.none() | TIMES,
    evictions=st.integers(0, 2**31 - 1),
    failback=st.none() | ATTEMPTS,
)
MARKERS: Final = st.sampled_from(
    ("", f"v1 {UID} a100", f"v1 {UID} west/a100", f"v1 {UID} ", "v1 x spot-b", "v9")
)
TRAIN, OTHER = JobKey("JobSet", "vision", "train"), JobKey("JobSet", "hostile", "train")


def job_of(namespace: str, uid: str, pool: str, *, annotations: Mapping[str, str], suspended: bool) -> Json:
    """A JobSet of two pods that selects a pool, in a namespace."""
    template = replicated_job(selector={POOL: pool}, completions=2)
    return with_metadata(
        jobset(template, annotations=annotations, suspend=suspended), namespace=namespace, uid=uid
    )


@given(
    state=STATES.map(write_state) | st.sampled_from(("", "{}", "[", '{"evictions": 1e308}', '{"rank": NaN}')),
    marker=MARKERS,
    selected=st.sampled_from(("spot-a", "spot-b", "a100")),
    suspended=st.booleans(),
    placed=st.integers(0, 2),
)
def test_a_record_leads_to_no_pool_outside_the_ladder_and_makes_no_other_job_wait(
    state: str, marker: str, selected: str, *, suspended: bool, placed: int
) -> None:
    caches = training_caches("vision", "hostile")
    observer = observer_of(caches)
    for within in ("vision", "hostile"):
        caches.policies.put(policy(within=within))
    forged = {STATE: state, SUSPENDED_FOR: marker}
    caches.jobs["JobSet"].put(job_of("hostile", UID, selected, annotations=forged, suspended=suspended))
    caches.jobs["JobSet"].put(job_of("vision", "other", "spot-a", annotations={}, suspended=False))
    for number in range(placed):
        caches.nodes.put(node(f"n{number}", labels={POOL: selected}))
        bound = condition("PodScheduled", at=NOW)
        found = worker(f"w{number}", node=f"n{number}", conditions=[bound])
        caches.pods[POD_LABELS[0]].put(with_metadata(found, namespace="hostile"))
    context = observer.observe(OTHER)
    assert context is not None
    decision = decide(context.state, context.seen, context.policy)
    for action in decision.actions:
        if isinstance(action, Suspend | Resume | CreatePlaceholders):
            assert action.pool in LADDER | {selected}
        if isinstance(action, CreatePlaceholders):
            assert gang_size(action.shapes) == 2
    beside = observer.observe(TRAIN)
    assert beside is not None
    waits = {pool for pool, each in beside.seen.pools.items() if each.reserving is not None}
    assert waits <= LADDER
    if selected not in LADDER:
        assert not waits
        assert beside.seen.contending_gang is None
