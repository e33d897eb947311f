"""Facts of scenes that went well; one override spoils one thing."""

from dataclasses import replace

from holdfast.rehearsal.scenarios.placement import Placement
from holdfast.rehearsal.scenarios.pod_placement import DefaultPlacement, RayJobPlacement, Room
from holdfast.rehearsal.scenarios.spot_restart import SpotRestart

SPOT = Placement(pod="p", node="spot-1", pool="cpu-spot", capacity="spot", machine="c7i.4xlarge", gpus=0)
PLAIN = Placement(pod="q", node="cpu-1", pool="cpu", capacity="on-demand", machine="m7i.xlarge", gpus=0)
GPU = Placement(pod="g", node="gpu-1", pool="a100", capacity="on-demand", machine="p4d.24xlarge", gpus=8)


def restart(
    *,
    before: tuple[Placement, ...] = (SPOT,),
    interrupted: str = "spot-1",
    evicted: tuple[str, ...] = ("p",),
    after: tuple[Placement, ...] = (replace(SPOT, pod="p2", node="spot-2"),),
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
    plain: Placement = PLAIN,
    rooms: tuple[Room, ...] = (Room(placement=SPOT, free_cpus=15), Room(placement=GPU, free_cpus=95)),
) -> DefaultPlacement:
    """A plain pod on the default pool while a spot and a GPU machine had room."""
    return DefaultPlacement(plain=plain, rooms=rooms)


def rayjob(
    *,
    state: str = "Running",
    head: Placement = PLAIN,
    workers: tuple[Placement, ...] = (SPOT,),
    submitters: tuple[Placement, ...] = (PLAIN,),
) -> RayJobPlacement:
    """A RayJob that runs, with workers on spot and all else on the default pool."""
    return RayJobPlacement(rayjob="ray", state=state, head=head, workers=workers, submitters=submitters)
