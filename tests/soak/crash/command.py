"""The command that kills the engine after one resource after another."""

import os
import random
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.rehearsal.cli.arguments import Arguments
from holdfast.rehearsal.lifecycle.checks import unprotected
from holdfast.rehearsal.output import say
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi.checkpoint import Recorded, type_in
from holdfast.simulator.stacks import Stack
from tests.soak.crash import Proof, pivotal, prove, run_undisturbed, sample
from tests.soak.crash.stages import StackStage

SEED_VARIABLE = "HOLDFAST_SEED"


def crash(arguments: Arguments, workspace: Workspace) -> None:
    """Prove, for every resource of a stack or a sample, that a run killed after it is made up for.

    Runs on a control plane of its own: the stack of that name, if it is up, is left alone. Raises
    RehearsalError where any run did not arrive where the undisturbed one does.
    """
    stack = _destroyable(
        Stack.named(arguments.stack, workspace, report=say, run_as=f"{arguments.stack}-crash")
    )
    seed = seed_of(arguments.seed, os.environ.get(SEED_VARIABLE))
    try:
        stack.surroundings.start()
        _prove_all(StackStage(stack=stack), arguments.sample, seed)
    finally:
        stack.surroundings.remove()
        StackStage(stack=stack).clear()


def seed_of(given: int | None, variable: str | None) -> int:
    """Return the seed: the flag's, else the variable's, else one drawn now. Raises RehearsalError for no number."""
    if given is not None:
        return given
    if not variable:
        return secrets.randbelow(1_000_000)
    if not variable.isdecimal():
        raise RehearsalError(f"{SEED_VARIABLE} is {variable!r}: it must be a number, as 42")
    return int(variable)


def drawn(urns: Sequence[str], size: int, seed: int) -> tuple[str, ...]:
    """Return those of a stack's resources that it turns on, and so many others, drawn with the seed."""
    always = frozenset(pivotal(urns))
    others = sample([urn for urn in urns if urn not in always], size, seed)
    return tuple(urn for urn in urns if urn in always or urn in others)


def _destroyable(stack: Stack) -> Stack:
    """Return the stack as its owner makes it before a destroy: each kill is followed by one."""
    if not stack.subject.protected:
        return stack
    subject = replace(stack.subject, settings=unprotected(stack.subject.settings))
    return replace(stack, subject=subject)


def _prove_all(stage: StackStage, size: int | None, seed: int) -> None:
    say("An undisturbed up and destroy, for comparison.")
    baseline = run_undisturbed(stage)
    chosen = baseline.urns if size is None else drawn(baseline.urns, size, seed)
    which = (
        "every one" if size is None else f"{len(chosen)}, those it turns on and others drawn with seed {seed}"
    )
    say(f"{len(baseline.urns)} resources; up and destroy are killed after {which}.")
    proofs = [
        _told(prove(stage, urn, baseline), f"{number}/{len(chosen)}") for number, urn in enumerate(chosen, 1)
    ]
    failed = [proof for proof in proofs if proof.faults]
    if failed:
        raise RehearsalError(
            f"after {len(failed)} of {len(proofs)} kills the next run did not make up for it"
        )
    say(f"After each of {len(proofs)} kills the next run arrived where an undisturbed one does.")


def _told(proof: Proof, position: str) -> Proof:
    say(f"{position:>7}  {'FAILED' if proof.faults else 'ok':<6}  {proof.seconds:5.0f} s  {proof.name}")
    for fault in proof.faults:
        say(f"         {fault}")
    return proof


_MADE_BY_THE_ENGINE = "pulumi:"
_PIVOTAL = (
    ":ServiceLinkedRole",
    ":Cluster",
    ":ManagedCluster",
    ":NodePool",
    ":AgentPool",
    ":ManagedFolderIamMember",
)


def every(resources: Iterable[Recorded]) -> tuple[str, ...]:
    """Return the URNs of the resources that a provider made, in the order in which they were made.

    Components and provider instances are the engine's own: nothing outside it is made for them. What was only
    read was made by somebody else.
    """
    return tuple(
        one.urn
        for one in resources
        if one.id and not one.external and not one.type.startswith(_MADE_BY_THE_ENGINE)
    )


def pivotal(urns: Sequence[str]) -> tuple[str, ...]:
    """Return the URNs that a stack turns on: its spot role, its cluster, its Karpenter, its pools, and GCP's grants.

    A run killed after one of these leaves the most behind: an account-wide role, what everything else is inside,
    what ends machines, what owns them, and rights to checkpoints of pods that any cluster of the project can have.
    """
    return tuple(urn for urn in urns if type_in(urn).endswith(_PIVOTAL) or _is_karpenter(urn))


def _is_karpenter(urn: str) -> bool:
    return type_in(urn).endswith("Release") and "karpenter" in urn.lower() and not urn.endswith("-crds")


def sample(urns: Sequence[str], size: int, seed: int) -> tuple[str, ...]:
    """Return some of the URNs, at most `size`, in their order; the same for the same seed."""
    chosen = frozenset(random.Random(seed).sample(urns, min(size, len(urns))))
    return tuple(urn for urn in urns if urn in chosen)
