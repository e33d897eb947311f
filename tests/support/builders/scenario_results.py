"""Valid results of the scenarios; tests override one value."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pulumi_holdfast.rehearsal.scenarios.ladder_walk import LadderWalk
from pulumi_holdfast.rehearsal.scenarios.placement import PodPlacement
from pulumi_holdfast.rehearsal.scenarios.pod_placement import DefaultPlacement, FreeCapacity, RayJobPlacement
from pulumi_holdfast.rehearsal.scenarios.spot_restart import SpotRestart
from pulumi_holdfast.rehearsal.scenarios.training import Attempt, TrainingRun
from pulumi_holdfast.rehearsal.timeline.traces import Move, PodTrace

SPOT = PodPlacement(pod="p", node="spot-1", pool="cpu-spot", capacity="spot", machine="c7i.4xlarge", gpus=0)
PLAIN = PodPlacement(pod="q", node="cpu-1", pool="cpu", capacity="on-demand", machine="m7i.xlarge", gpus=0)
GPU = PodPlacement(pod="g", node="gpu-1", pool="a100", capacity="on-demand", machine="p4d.24xlarge", gpus=8)


def restart(
    *,
    before: tuple[PodPlacement, ...] = (SPOT,),
    interrupted: str = "spot-1",
    evicted: tuple[str, ...] = ("p",),
    after: tuple[PodPlacement, ...] = (replace(SPOT, pod="p2", node="spot-2"),),
    restarts: int = 1,
) -> SpotRestart:
    """One pod evicted from one node, back on another."""
    return SpotRestart(
        jobset="train",
        before=before,
        interrupted=interrupted,
        evicted=evicted,
        after=after,
        restarts=restarts,
        seconds=5.0,
    )


def default_placement(
    *,
    plain: PodPlacement = PLAIN,
    candidates: tuple[FreeCapacity, ...] = (
        FreeCapacity(placement=SPOT, free_cpus=15),
        FreeCapacity(placement=GPU, free_cpus=95),
    ),
) -> DefaultPlacement:
    """A plain pod on the default pool while a spot and a GPU node had free capacity."""
    return DefaultPlacement(plain=plain, candidates=candidates)


def rayjob(
    *,
    state: str = "Running",
    head: PodPlacement = PLAIN,
    workers: tuple[PodPlacement, ...] = (SPOT,),
    submitters: tuple[PodPlacement, ...] = (PLAIN,),
) -> RayJobPlacement:
    """A RayJob that runs, with workers on spot and all else on the default pool."""
    return RayJobPlacement(rayjob="ray", state=state, head=head, workers=workers, submitters=submitters)


START = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)


def move(source: str, target: str, at: float, *, bound: float | None = 3.0) -> Move:
    """A move: gone after half a second, resumed after one, and bound when its nodes are there."""
    begun = START + timedelta(seconds=at)
    return Move(
        source=source,
        target=target,
        suspended_at=begun,
        gone_at=begun + timedelta(seconds=0.5),
        resumed_at=begun + timedelta(seconds=1),
        bound_at=None if bound is None else begun + timedelta(seconds=bound),
    )


def training_attempt(
    pool: str, began: int, reached: int, *, weights: str | None = None, lost: str = ""
) -> Attempt:
    """An attempt that took step after step."""
    pod = PodTrace(
        uid=f"{pool}-{began}", name="t-w-0-0-abcde", pool=pool, attempt=0, child="t", owner="o", born_at=START
    )
    return Attempt(
        pod=pod, lost=lost, began=began, steps=tuple(range(began + 1, reached + 1)), weights=weights
    )


def training_run(*attempts: Attempt) -> TrainingRun:
    """A training of a hundred steps that lost a machine without notice; by default exact at its end."""
    usual = (
        training_attempt("a-spot", 0, 30, lost="DeletionByPodGC"),
        training_attempt("a-spot", 20, 60),
        training_attempt("a", 60, 100, weights="[1.0, 2.0]"),
    )
    return TrainingRun(steps=100, attempts=attempts or usual, undisturbed="[1.0, 2.0]")


def walk(
    *,
    evictions: int = 3,
    moves: tuple[Move, ...] = (
        move("a-spot", "b-spot", 60, bound=None),
        move("b-spot", "a", 70),
        move("a", "a-spot", 100, bound=1.5),
    ),
    overlaps: tuple[str, ...] = (),
    gang: tuple[PodTrace, ...] = (),
) -> LadderWalk:
    """Three evictions, no capacity, and back up."""
    return LadderWalk(
        jobset="train",
        pools=("a-spot", "b-spot", "a"),
        evictions=evictions,
        restarts=2,
        moves=moves,
        evicted_at=START + timedelta(seconds=59.5),
        overlaps=overlaps,
        gang=gang,
        ended_at=START + timedelta(seconds=120),
        training=training_run(),
    )
