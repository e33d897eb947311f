"""What the rules count is observed from pods: programs that crash, pods that a kubelet rejects, each field that a rule reads."""

import ast
import json
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from pulumi_holdfast import controller
from pulumi_holdfast.controller.jobs.caches import POD_LABELS
from pulumi_holdfast.controller.jobs.observation import (
    CopyStatus,
    Deadline,
    Loss,
    Observation,
    PoolStatus,
    Reservation,
)
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import Phase
from pulumi_holdfast.controller.jobs.trimmed_objects import trim_pod
from pulumi_holdfast.controller.state_machine.outages import count_losses
from pulumi_holdfast.controller.state_machine.phases import step_running
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import ORIGINAL
from tests.support.builders.caches import caches_with_jobs, observer_of
from tests.support.builders.fallback_objects import NAMESPACE, NOW, UID, jobset, node, worker
from tests.support.builders.job_states import policy, running, tier
from tests.support.json_objects import obj

CONTROLLER = Path(controller.__file__).parent

TRAIN = JobKey("JobSet", NAMESPACE, "train")
OF_JOBSET, _, _ = POD_LABELS
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("starts", [1, 8])
def test_a_program_that_crashes_after_each_start_is_counted_each_time(starts: int) -> None:
    caches, clock = caches_with_jobs(), [NOW]
    observer = observer_of(caches, now=lambda: clock[0])
    caches.nodes.put(node("n"))
    state = running(uid=UID, pool="spot-a", since=NOW)
    for start in range(starts):
        name = f"w{start}"
        begun = NOW + start * 10 * SECOND
        clock[0] = begun + 8 * SECOND
        caches.jobs["JobSet"].put(jobset(status={"restarts": start}))
        caches.pods[OF_JOBSET].put(worker(name, node="n", created=begun))
        crashed = worker(name, node="n", created=begun, phase="Failed", ended_at=clock[0])
        caches.pods[OF_JOBSET].put(crashed)
        seen = observer.observe(TRAIN)
        assert seen is not None
        state = count_losses(state, seen.seen, policy())
        caches.pods[OF_JOBSET].remove(crashed)
    assert (state.application_failures, state.evictions, state.unexplained) == (starts, 0, 0)


@pytest.mark.parametrize(
    ("limit", "is_given_up"), [({"maxRestarts": 3}, True), ({"maxRestarts": 4}, False), ({}, False)]
)
def test_the_authors_restart_limit_ends_a_program_that_crashes(limit: Json, *, is_given_up: bool) -> None:
    caches = caches_with_jobs()
    observer = observer_of(caches)
    caches.nodes.put(node("n"))
    caches.jobs["JobSet"].put(jobset(annotations={ORIGINAL: json.dumps(limit)}))
    crashed = worker("w", node="n", created=NOW - 8 * SECOND, phase="Failed", ended_at=NOW)
    caches.pods[OF_JOBSET].put(crashed)
    seen = observer.observe(TRAIN)
    assert seen is not None
    pools = policy(tiers=(tier("spot-a", max_failures=9), tier("on-demand")))
    before = running(uid=UID, pool="spot-a", since=NOW - timedelta(hours=1), application_failures=3)
    step = step_running(before, seen.seen, pools)
    assert step.state is not None
    assert step.state.application_failures == 4
    assert (step.state.phase is Phase.GIVEN_UP) == is_given_up


def rejected(reason: str, *, started: bool = False) -> Json:
    """A pod as a kubelet leaves it when it rejects it, or ends it (`started`), trimmed as in the cache."""
    pod = worker("w", node="n", phase="Failed", reason=reason)
    states = [{"state": {"terminated": {"exitCode": 137}}}] if started else []
    return trim_pod({**pod, "status": {**obj(pod["status"]), "containerStatuses": states}})


@pytest.mark.parametrize(
    ("reason", "started", "is_of_node"),
    [
        ("UnexpectedAdmissionError", False, True),
        ("OutOfcpu", False, True),
        ("OutOfnvidia.com/gpu", False, True),
        ("NodeAffinity", False, True),
        ("TopologyAffinityError", False, True),
        ("NodeShutdown", False, True),
        ("Terminated", True, True),
        ("Preempting", True, True),
        ("Evicted", False, True),
        ("Evicted", True, False),
        ("DeadlineExceeded", False, False),
        ("", False, False),
    ],
)
def test_a_kubelets_rejection_is_one_eviction_however_often_it_is_observed(
    reason: str, *, started: bool, is_of_node: bool
) -> None:
    caches, clock = caches_with_jobs(), [NOW]
    observer = observer_of(caches, now=lambda: clock[0])
    caches.nodes.put(node("n"))
    caches.pods[OF_JOBSET].put(rejected(reason, started=started))
    state = running(uid=UID, pool="spot-a", since=NOW)
    for minutes in (0, 10, 20):
        clock[0] = NOW + timedelta(minutes=minutes)
        seen = observer.observe(TRAIN)
        assert seen is not None
        state = count_losses(state, seen.seen, policy())
    assert (state.evictions, state.application_failures) == ((1, 0) if is_of_node else (0, 1))


def parsed(*parts: str) -> Iterator[ast.AST]:
    """The syntax of the controller's parts."""
    for part in parts:
        for path in sorted((CONTROLLER / part).glob("*.py")):
            yield from ast.walk(ast.parse(path.read_text()))


READ = {each.attr for each in parsed("state_machine") if isinstance(each, ast.Attribute)}
OBSERVED = [each for each in parsed("jobs", "loop", "other_clusters") if isinstance(each, ast.Call)]


@pytest.mark.parametrize("kind", [Observation, Loss, Reservation, Deadline, PoolStatus, CopyStatus])
def test_each_field_that_a_rule_reads_is_filled_by_an_observer(kind: type) -> None:
    makers = {kind.__name__} if kind is Loss else {kind.__name__, "replace"}
    filled = {
        given.arg
        for call in OBSERVED
        if isinstance(call.func, ast.Name) and call.func.id in makers
        for given in call.keywords
    }
    assert {field.name for field in fields(kind)} & READ <= filled
