"""`python -m tests.soak crash`: kills the engine after one resource after another."""

import os
from dataclasses import replace

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.lifecycle.checks import unprotected
from pulumi_holdfast.rehearsal.output import say
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks import Stack
from tests.soak.crash.proving import Proof, prove, run_uninterrupted
from tests.soak.crash.selection import drawn
from tests.soak.crash.targets import StackTarget
from tests.soak.seeds import SEED_VARIABLE, seed_of


def crash(name: str, workspace: Workspace, *, size: int | None, seed: int | None) -> None:
    """Prove for a sample of a stack's resources, or with `size` None for all, that the run after a kill converges.

    Runs on a control plane of its own; a stack of that name that is up is not touched. Raises RehearsalError if any
    run ends in a state other than that of the uninterrupted run.
    """
    stack = _destroyable(Stack.named(name, workspace, report=say, run_as=f"{name}-crash"))
    drawn_seed = seed_of(seed, os.environ.get(SEED_VARIABLE))
    try:
        stack.environment.start()
        _prove_all(StackTarget(stack=stack), size, drawn_seed)
    finally:
        stack.environment.remove()
        StackTarget(stack=stack).clear()


def _destroyable(stack: Stack) -> Stack:
    """Return the stack without protection: each kill is followed by a destroy."""
    if not stack.subject.protected:
        return stack
    subject = replace(stack.subject, settings=unprotected(stack.subject.settings))
    return replace(stack, subject=subject)


def _prove_all(stage: StackTarget, size: int | None, seed: int) -> None:
    say("An uninterrupted up and destroy, for comparison.")
    baseline = run_uninterrupted(stage)
    chosen = baseline.urns if size is None else drawn(baseline.urns, size, seed)
    which = (
        "every one" if size is None else f"{len(chosen)}: the pivotal ones and others drawn with seed {seed}"
    )
    say(f"{len(baseline.urns)} resources; up and destroy are killed after {which}.")
    proofs = [
        _reported(prove(stage, urn, baseline), f"{number}/{len(chosen)}")
        for number, urn in enumerate(chosen, 1)
    ]
    failed = [proof for proof in proofs if proof.faults]
    if failed:
        raise RehearsalError(f"the next run did not converge after {len(failed)} of {len(proofs)} kills")
    say(f"After each of {len(proofs)} kills the next run reached the state of an uninterrupted one.")


def _reported(proof: Proof, position: str) -> Proof:
    say(f"{position:>7}  {'FAILED' if proof.faults else 'ok':<6}  {proof.seconds:5.0f} s  {proof.name}")
    for fault in proof.faults:
        say(f"         {fault}")
    return proof
