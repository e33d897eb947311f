"""Runs a stack, kills the engine in the middle, and compares where the next runs arrive."""

import time
from collections import Counter
from dataclasses import dataclass

from holdfast.simulator.pulumi import EngineKilled, Outcome
from holdfast.simulator.pulumi.checkpoint import type_in
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.process import EngineProcess
from tests.soak.crash.choosing import every
from tests.soak.crash.stage import Stage, run_destroy, run_up


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Where an undisturbed run arrives: what it made, all that exists then, and after its destroy."""

    urns: tuple[str, ...]
    types: frozenset[str]
    objects: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What the runs around one kill came to; `faults` are the differences, empty where there are none."""

    urn: str
    faults: tuple[str, ...]
    seconds: float

    @property
    def name(self) -> str:
        """The resource's type and name."""
        return f"{type_in(self.urn)} {self.urn.rsplit('::', 1)[-1]}"


def run_undisturbed(stage: Stage) -> Baseline:
    """Run `up` and `destroy` without a kill and return what others are compared with."""
    stage.clear()
    run_up(stage)
    urns = every(stage.checkpoint().resources)
    types = frozenset(map(type_in, urns))
    objects = stage.objects(types)
    run_destroy(stage)
    return Baseline(urns=urns, types=types, objects=objects, left=stage.objects(types))


def prove(stage: Stage, urn: str, baseline: Baseline) -> Proof:
    """Kill `up` after one resource and `destroy` after the same, each time going on with a second run.

    The second `up` must arrive where the undisturbed one does, the third change nothing, and the second
    `destroy` leave no more than the undisturbed one.
    """
    began = time.monotonic()
    stage.clear()
    found = [
        *_killed_up(stage, urn),
        *differences("the second up", stage.objects(baseline.types), baseline.objects),
        *refused_changes("the third up", run_up(stage)),
        *_killed_destroy(stage, urn),
        *differences("the second destroy", stage.objects(baseline.types), baseline.left),
    ]
    return Proof(urn=urn, faults=tuple(found), seconds=time.monotonic() - began)


def _killed_up(stage: Stage, urn: str) -> list[str]:
    process = EngineProcess()
    faults = Faults(on_crash=process.kill)
    faults.crash_after_create(urn)
    try:
        with stage.session(faults, process) as rehearsal:
            rehearsal.up()
    except EngineKilled:
        run_up(stage)
        return []
    return ["the first up was not killed: it did not create the resource"]


def _killed_destroy(stage: Stage, urn: str) -> list[str]:
    process = EngineProcess()
    faults = Faults(on_crash=process.kill)
    faults.crash_after_delete(urn)
    try:
        with stage.session(faults, process) as rehearsal:
            rehearsal.destroy()
    except EngineKilled:
        run_destroy(stage)
    # Not every resource is deleted by its provider: some are retained on purpose. Then there was no kill.
    return [f"the engine still knows {one.urn}" for one in stage.checkpoint().resources]


def differences(moment: str, found: tuple[str, ...], expected: tuple[str, ...]) -> list[str]:
    """Return what there is after a run and should not be, and what should be and is not."""
    there, wanted = Counter(found), Counter(expected)
    return [
        *(f"after {moment} there is also {one}" for one in (there - wanted).elements()),
        *(f"after {moment} there is no {one}" for one in (wanted - there).elements()),
    ]


def refused_changes(moment: str, outcome: Outcome) -> list[str]:
    """Return what a run changed that had nothing to change."""
    return [f"{moment} changed {dict(outcome.changes)}"] if outcome.changed else []
