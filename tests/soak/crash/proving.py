"""Kills the engine during a run and compares the state after the next run with that of an uninterrupted one."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from pulumi_holdfast.rehearsal.engine import CommandOutcome, EngineKilled, Rehearsal
from pulumi_holdfast.rehearsal.engine.checkpoint import Checkpoint, type_in
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.process import EngineProcess
from tests.soak.crash.selection import every


class CrashTarget(Protocol):
    """A stack on simulated clouds that can be run repeatedly from an empty state."""

    def session(self, faults: Faults, process: EngineProcess) -> AbstractContextManager[Rehearsal]:
        """Open the stack."""
        ...

    def checkpoint(self) -> Checkpoint:
        """Return the engine's state."""
        ...

    def objects(self, types: frozenset[str]) -> tuple[str, ...]:
        """Return a line for each object of these types outside of the engine, equal in every run."""
        ...

    def clear(self) -> None:
        """Remove everything, also what a destroyed stack retains."""
        ...


def run_up(stage: CrashTarget) -> CommandOutcome:
    """Run `up` without a kill."""
    process = EngineProcess()
    with stage.session(Faults(on_crash=process.kill), process) as rehearsal:
        return rehearsal.up()


def run_destroy(stage: CrashTarget) -> CommandOutcome:
    """Run `destroy` without a kill."""
    process = EngineProcess()
    with stage.session(Faults(on_crash=process.kill), process) as rehearsal:
        return rehearsal.destroy()


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The state after an uninterrupted `up` and after its `destroy`."""

    urns: tuple[str, ...]
    types: frozenset[str]
    objects: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The result of the runs around one kill; `faults` are the differences, empty if there are none."""

    urn: str
    faults: tuple[str, ...]
    seconds: float

    @property
    def name(self) -> str:
        """The resource's type and name."""
        return f"{type_in(self.urn)} {self.urn.rsplit('::', 1)[-1]}"


def run_uninterrupted(stage: CrashTarget) -> Baseline:
    """Run `up` and `destroy` without a kill, and return the state to compare with."""
    stage.clear()
    run_up(stage)
    urns = every(stage.checkpoint().resources)
    types = frozenset(map(type_in, urns))
    objects = stage.objects(types)
    run_destroy(stage)
    return Baseline(urns=urns, types=types, objects=objects, left=stage.objects(types))


def prove(stage: CrashTarget, urn: str, baseline: Baseline) -> Proof:
    """Kill `up` after a resource and `destroy` after the same one, each followed by a second run.

    The second `up` must reach the state of the uninterrupted one, the third must change nothing, and the second
    `destroy` must leave no more than the uninterrupted one.
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
    if _killed(stage, frozenset([urn]), "create", Rehearsal.up) is None:
        return ["the first up was not killed: it did not create the resource"]
    run_up(stage)
    return []


def _killed_destroy(stage: CrashTarget, urn: str) -> list[str]:
    # A retained resource is not deleted by its provider: then there is no kill.
    if _killed(stage, frozenset([urn]), "delete", Rehearsal.destroy) is not None:
        run_destroy(stage)
    return [f"the engine still knows {one.urn}" for one in stage.checkpoint().resources]


def differences(moment: str, found: tuple[str, ...], expected: tuple[str, ...]) -> list[str]:
    """Return the objects that exist after a run and should not, and those that should and do not."""
    there, wanted = Counter(found), Counter(expected)
    return [
        *(f"after {moment} there is also {one}" for one in (there - wanted).elements()),
        *(f"after {moment} there is no {one}" for one in (wanted - there).elements()),
    ]


def refused_changes(moment: str, outcome: CommandOutcome) -> list[str]:
    """Return the changes of a run that had nothing to change."""
    return [f"{moment} changed {dict(outcome.changes)}"] if outcome.changed else []


@dataclass(frozen=True, kw_only=True)
class SequenceProof:
    """The result of runs with several kills: after which resources, and the `faults`, empty if there are none."""

    killed_up: tuple[str, ...]
    killed_destroy: tuple[str, ...]
    faults: tuple[str, ...]
    seconds: float


def prove_in_sequence(stage: CrashTarget, urns: Sequence[str], baseline: Baseline) -> SequenceProof:
    """Kill `up` after each of these resources, then `destroy` after each; every run continues the previous one.

    The last `up` must reach the state of the uninterrupted one, the next must change nothing, and the last `destroy` must
    leave no more than the uninterrupted one. Much faster than one proof for each resource, but only the last run is
    uninterrupted.
    """
    began = time.monotonic()
    stage.clear()
    killed_up = _until_it_ends(stage, urns, "create", Rehearsal.up)
    # A resource that was in progress at the kill is finished by its provider, and the next run takes it over: there is no
    # kill after it.
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
    stage: CrashTarget, urns: Sequence[str], when: str, command: Callable[[Rehearsal], CommandOutcome]
) -> tuple[str, ...]:
    """Repeat a command, killed each time one of the resources is done; return the resources it was killed after."""
    pending: frozenset[int | str] = frozenset(urns)
    while (left := _killed(stage, pending, when, command)) is not None:
        pending = left
    return tuple(urn for urn in urns if urn not in pending)


def _killed(
    stage: CrashTarget,
    pending: frozenset[int | str],
    when: str,
    command: Callable[[Rehearsal], CommandOutcome],
) -> frozenset[int | str] | None:
    """Run a command, and kill it once one of the resources is done; return those that are not, or None without a kill."""
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
        return left
    return None
