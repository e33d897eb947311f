"""Runs a stack, kills the engine in the middle, and compares where the next runs arrive."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from holdfast.simulator.pulumi import EngineKilled, Outcome, Rehearsal
from holdfast.simulator.pulumi.checkpoint import Checkpoint, type_in
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.process import EngineProcess
from tests.soak.crash.selection import every


class CrashTarget(Protocol):
    """A stack on stand-ins, which can be run again and again from an empty beginning."""

    def session(self, faults: Faults, process: EngineProcess) -> AbstractContextManager[Rehearsal]:
        """Open the stack."""
        ...

    def checkpoint(self) -> Checkpoint:
        """Return the engine's state."""
        ...

    def objects(self, types: frozenset[str]) -> tuple[str, ...]:
        """Return what exists outside the engine of these types: a line for each object, the same in every run."""
        ...

    def clear(self) -> None:
        """Remove what a destroyed stack may leave on purpose."""
        ...


def run_up(stage: CrashTarget) -> Outcome:
    """Bring the stack up, undisturbed."""
    process = EngineProcess()
    with stage.session(Faults(on_crash=process.kill), process) as rehearsal:
        return rehearsal.up()


def run_destroy(stage: CrashTarget) -> Outcome:
    """Take the stack down, undisturbed."""
    process = EngineProcess()
    with stage.session(Faults(on_crash=process.kill), process) as rehearsal:
        return rehearsal.destroy()


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


def run_uninterrupted(stage: CrashTarget) -> Baseline:
    """Run `up` and `destroy` without a kill and return what others are compared with."""
    stage.clear()
    run_up(stage)
    urns = every(stage.checkpoint().resources)
    types = frozenset(map(type_in, urns))
    objects = stage.objects(types)
    run_destroy(stage)
    return Baseline(urns=urns, types=types, objects=objects, left=stage.objects(types))


def prove(stage: CrashTarget, urn: str, baseline: Baseline) -> Proof:
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


def _killed_up(stage: CrashTarget, urn: str) -> list[str]:
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


def _killed_destroy(stage: CrashTarget, urn: str) -> list[str]:
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


@dataclass(frozen=True, kw_only=True)
class SequenceProof:
    """What runs with several kills came to: after which resources, and the `faults`, empty where there are none."""

    killed_up: tuple[str, ...]
    killed_destroy: tuple[str, ...]
    faults: tuple[str, ...]
    seconds: float


def prove_in_sequence(stage: CrashTarget, urns: Sequence[str], baseline: Baseline) -> SequenceProof:
    """Kill `up` after each of these resources, then `destroy` after each, every run going on from the one before.

    The last `up` must arrive where the undisturbed one does, the next change nothing, and the last `destroy` leave no
    more than the undisturbed one. Far quicker than one proof for each resource, where the same way up is gone again
    and again; but a run is never followed by one that is left in peace, except the last.
    """
    began = time.monotonic()
    stage.clear()
    killed_up = _until_it_ends(stage, urns, "create", Rehearsal.up)
    # One that was still being made when a run was killed after another is finished by its stand-in, and taken up by the
    # next run: no kill of its own can come after it.
    made = {*killed_up, *(one.urn for one in stage.checkpoint().resources)}
    found = [
        *(f"no up was killed after {urn}: none created it" for urn in urns if urn not in made),
        *differences("the last up", stage.objects(baseline.types), baseline.objects),
        *refused_changes("another up", run_up(stage)),
    ]
    killed_destroy = _until_it_ends(stage, urns, "delete", Rehearsal.destroy)
    found += [
        *(f"the engine still knows {one.urn}" for one in stage.checkpoint().resources),
        *differences("the last destroy", stage.objects(baseline.types), baseline.left),
    ]
    return SequenceProof(
        killed_up=killed_up,
        killed_destroy=killed_destroy,
        faults=tuple(found),
        seconds=time.monotonic() - began,
    )


def _until_it_ends(
    stage: CrashTarget, urns: Sequence[str], when: str, command: Callable[[Rehearsal], Outcome]
) -> tuple[str, ...]:
    """Run a command again and again, killed each time one of the resources is done; return those it was killed after."""
    pending: frozenset[int | str] = frozenset(urns)
    while True:
        process = EngineProcess()
        faults = Faults(on_crash=process.kill)
        order = faults.crash_after_create if when == "create" else faults.crash_after_delete
        for urn in pending:
            order(urn)
        try:
            with stage.session(faults, process) as rehearsal:
                command(rehearsal)
        except EngineKilled:
            left = faults.ordered(when)
            if left == pending:
                raise
            pending = left
        else:
            return tuple(urn for urn in urns if urn not in pending)
