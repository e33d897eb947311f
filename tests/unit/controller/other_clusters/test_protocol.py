"""Transfers: over all orders of events no two generations of a job run, and the job ends where its ladder wants it."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.observation import JobOutcome
from pulumi_holdfast.controller.other_clusters.protocol import (
    CopyView,
    DeleteCopy,
    HomeView,
    Permit,
    RecordOutcome,
    RemoteView,
    SetPermit,
    SuspendAtHome,
    TransferAction,
    TransferRecord,
    TransferStage,
    WriteRecord,
    decide_transfer,
    is_name_taken,
    read_transfer,
    write_record,
)
from tests.support.fakes.transfer_at_rest import (
    at_rest,
    copy_runs,
    home_runs,
    late_requests,
    leftover_waits,
    problem_at_rest,
)
from tests.support.fakes.transfer_world import (
    CLUSTER,
    FIRST,
    UID,
    Decide,
    Guard,
    Rules,
    World,
    generations_with_pods,
    next_states,
)
from tests.support.soak import sized

STARTS = (home_runs, copy_runs, leftover_waits, late_requests)
UNBOUNDED = 10_000


def explore(
    rules: Rules, starts: Sequence[Callable[[], World]], *, user: int, most: int | None = None
) -> tuple[int, str | None]:
    """Visit every state that can be reached; return how many, and the first problem with the number of steps to it."""
    wide = replace(rules, epochs=UNBOUNDED, copies=UNBOUNDED)
    steps = {start()._replace(user=user): 0 for start in starts}
    queue, rested = deque(steps), dict[object, str | None]()
    while queue and (most is None or len(steps) < most):
        world = queue.popleft()
        for after in next_states(world, rules):
            if after in steps:
                continue
            steps[after] = steps[world] + 1
            queue.append(after)
            problem = "two generations have pods" if generations_with_pods(after) > 1 else None
            alone = after._replace(requests=(), user=0, read_home=world.read_home, read_copy=world.read_copy)
            key = alone._replace(read_home=(None, True), read_copy=(None, True, True))
            if problem is None and key not in rested:
                rested[key] = problem_at_rest(at_rest(alone, wide))
            problem = problem or rested[key]
            if problem is not None:
                return len(steps), f"{problem} after {steps[after]} steps"
    return len(steps), None


def test_transfer_in_every_order_of_events_runs_one_generation_and_comes_to_rest() -> None:
    states, problem = explore(Rules(), STARTS, user=sized(1, soak=3))

    assert problem is None, "stale reads, late, doubled and lost requests, and users must not matter"
    assert states > 5_000


@pytest.mark.parametrize(
    ("missing", "start", "user"),
    [
        ({Guard.HOME_VERSION}, late_requests, 1),
        ({Guard.COPY_VERSION, Guard.PERMIT_ORDER}, late_requests, 1),
        ({Guard.LOOK_AT_HOME}, home_runs, 2),
        ({Guard.LOOK_THERE}, copy_runs, 1),
        ({Guard.CREATED_SUSPENDED}, home_runs, 2),
        ({Guard.HOME_ADMISSION}, copy_runs, 1),
        ({Guard.REMOTE_ADMISSION}, leftover_waits, 1),
        ({Guard.DELETION_ADMISSION}, copy_runs, 1),
        ({Guard.LEFTOVERS}, leftover_waits, 1),
    ],
)
def test_transfer_without_one_of_its_guards_fails(
    missing: set[Guard], start: Callable[[], World], user: int
) -> None:
    _, problem = explore(Rules(guards=frozenset(Guard) - missing), (start,), user=user, most=50_000)

    assert problem is not None


def _goes_home_when_the_cluster_is_away(
    view: HomeView, remotes: Mapping[str, RemoteView | None]
) -> TransferAction | None:
    record = view.record
    if record is not None and record.stage is TransferStage.AWAY and remotes[CLUSTER] is None:
        return WriteRecord(
            record=replace(record, stage=TransferStage.HOME, cluster="", copy=""), is_held=False
        )
    return decide_transfer(view, remotes)


def _grants_before_it_records(
    view: HomeView, remotes: Mapping[str, RemoteView | None]
) -> TransferAction | None:
    action, remote = decide_transfer(view, remotes), remotes[CLUSTER]
    if (
        isinstance(action, WriteRecord)
        and action.record.stage is TransferStage.AWAY
        and remote
        and remote.copy
    ):
        return SetPermit(copy=remote.copy.uid, version=remote.copy.version, permit=Permit.GRANTED)
    return action


def _takes_a_lost_record_for_none(
    view: HomeView, remotes: Mapping[str, RemoteView | None]
) -> TransferAction | None:
    if view.record is None and view.is_held:
        return WriteRecord(record=FIRST, is_held=False)
    return decide_transfer(view, remotes)


def _holds_nothing(view: HomeView, remotes: Mapping[str, RemoteView | None]) -> TransferAction | None:
    action = decide_transfer(view, remotes)
    return replace(action, is_held=False) if isinstance(action, WriteRecord) else action


def _deletes_without_a_recall(
    view: HomeView, remotes: Mapping[str, RemoteView | None]
) -> TransferAction | None:
    action = decide_transfer(view, remotes)
    if isinstance(action, SetPermit) and action.permit is Permit.RECALLED:
        return DeleteCopy(copy=action.copy, version=action.version)
    return action


@pytest.mark.parametrize(
    "decide",
    [
        _goes_home_when_the_cluster_is_away,
        _grants_before_it_records,
        _takes_a_lost_record_for_none,
        _holds_nothing,
        _deletes_without_a_recall,
    ],
)
def test_transfer_with_a_planted_fault_fails(decide: Decide) -> None:
    _, problem = explore(Rules(decide=decide), STARTS[:3], user=2, most=60_000)

    assert problem is not None, "the exploration must find a controller that decides wrong"


@settings(max_examples=sized(60, soak=3_000), deadline=None)
@given(start=st.sampled_from(STARTS), choices=st.lists(st.integers(0, 2**16), max_size=300))
def test_transfer_on_long_paths_runs_one_generation_and_comes_to_rest(
    start: Callable[[], World], choices: list[int]
) -> None:
    rules = Rules(epochs=UNBOUNDED, copies=UNBOUNDED, requests=4)
    world = start()._replace(user=20)
    for choice in choices:
        possible = list(next_states(world, rules))
        world = possible[choice % len(possible)]
        assert generations_with_pods(world) <= 1, "two generations would write one checkpoint"

    assert problem_at_rest(at_rest(world, rules)) is None


AWAY = TransferRecord(uid=UID, epoch=3, stage=TransferStage.AWAY, cluster=CLUSTER, copy="c")


def away(**changes: object) -> HomeView:
    """Return a job whose copy may run elsewhere."""
    return replace(HomeView(uid=UID, record=AWAY, is_held=True, wanted=CLUSTER), **changes)  # type: ignore[arg-type]  # fields of HomeView


def copied(**changes: object) -> RemoteView:
    """Return the cluster with the granted copy."""
    copy = CopyView(uid="c", version="7", origin=UID, epoch=3, permit=Permit.GRANTED)
    return RemoteView(copy=replace(copy, **changes), is_clear=False)  # type: ignore[arg-type]  # fields of CopyView


LADDER_AT_HOME = away(record=replace(AWAY, stage=TransferStage.PREPARING, copy=""), wanted="")
RESTORED = away(record=TransferRecord(uid=UID, epoch=2, stage=TransferStage.PREPARING, cluster=CLUSTER))
TAKEN = away(record=replace(AWAY, stage=TransferStage.PREPARING, copy=""), is_quiet=True)
AT_HOME = WriteRecord(record=TransferRecord(uid=UID, epoch=3), is_held=False)
RETURNING = WriteRecord(record=replace(AWAY, stage=TransferStage.RETURNING))
FAILED = RecordOutcome(outcome=JobOutcome.FAILED)


@pytest.mark.parametrize(
    ("view", "remote", "step"),
    [
        pytest.param(away(), None, None, id="partition"),
        pytest.param(away(abandoned=3), None, AT_HOME, id="cluster declared lost"),
        pytest.param(away(abandoned=2), None, None, id="earlier cluster declared lost"),
        pytest.param(away(), copied(outcome=JobOutcome.FAILED), FAILED, id="copy failed"),
        pytest.param(
            away(is_ended=True), copied(outcome=JobOutcome.FAILED), RETURNING, id="outcome recorded"
        ),
        pytest.param(
            LADDER_AT_HOME, None, AT_HOME, id="home is wanted before a permit, and the cluster is silent"
        ),
        pytest.param(away(is_suspended=False), None, SuspendAtHome(), id="resumed"),
        pytest.param(RESTORED, copied(), RETURNING, id="home restored from a backup"),
        pytest.param(TAKEN, copied(origin="another"), None, id="name taken"),
    ],
)
def test_transfer_takes_the_step_that_its_view_needs(
    view: HomeView, remote: RemoteView | None, step: TransferAction | None
) -> None:
    assert decide_transfer(view, {CLUSTER: remote}) == step


def test_a_name_that_another_object_has_is_reported() -> None:
    assert is_name_taken(away(), copied(origin="")), "an object that is no copy must not be touched"
    assert not is_name_taken(away(), copied())


@pytest.mark.parametrize("record", [FIRST, AWAY, replace(AWAY, stage=TransferStage.PREPARING, copy="")])
def test_a_record_that_is_written_is_read_again(record: TransferRecord) -> None:
    assert read_transfer(write_record(record), UID) == record, "a restart must not change a transfer"


@pytest.mark.parametrize(
    "text", ["", "v2 job 1 Away c u", "v1 job x Away c u", "v1 job 1 Gone c u", "v1 other 1 Away c u"]
)
def test_a_text_that_is_not_the_jobs_record_is_no_record(text: str) -> None:
    assert read_transfer(text, UID) is None
