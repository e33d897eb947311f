"""Several kills on one way up and one way down: each run goes on from the one killed before it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.simulator.pulumi import EngineKilled, Outcome, Rehearsal
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.process import EngineProcess
from tests.soak.crash.proving import Baseline, differences, refused_changes
from tests.soak.crash.stage import Stage, run_up


@dataclass(frozen=True, kw_only=True)
class ProofInTurn:
    """What runs with several kills came to: after which resources, and the `faults`, empty where there are none."""

    killed_up: tuple[str, ...]
    killed_destroy: tuple[str, ...]
    faults: tuple[str, ...]
    seconds: float


def prove_in_turn(stage: Stage, urns: Sequence[str], baseline: Baseline) -> ProofInTurn:
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
    return ProofInTurn(
        killed_up=killed_up,
        killed_destroy=killed_destroy,
        faults=tuple(found),
        seconds=time.monotonic() - began,
    )


def _until_it_ends(
    stage: Stage, urns: Sequence[str], when: str, command: Callable[[Rehearsal], Outcome]
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
