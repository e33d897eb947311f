"""`python -m tests.soak faults`: runs many jobs on a ladder while everything around them fails."""

import os
from pathlib import Path

from holdfast.rehearsal.commands import own_place
from holdfast.rehearsal.output import say
from holdfast.simulator.control_plane.configuration import Layout
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.paths import Workspace
from holdfast.simulator.stacks import Stack
from tests.soak.faults.environment import FaultEnvironment
from tests.soak.faults.invariants import FaultRunResult
from tests.soak.faults.plan import draw_plan
from tests.soak.faults.run import run_faults
from tests.soak.seeds import SEED_VARIABLE, seed_of


def faults(name: str, workspace: Workspace, *, seed: int | None, jobs: int, rounds: int) -> None:
    """Bring the stack up on a control plane of its own, inject the faults of a seed, and check every job.

    Raises RehearsalError if a job is not where the ladder's state machine says, or two gangs of one ran together.
    """
    plan = draw_plan(seed_of(seed, os.environ.get(SEED_VARIABLE)), jobs=jobs, rounds=rounds)
    say(f"{plan.jobs} jobs, {len(plan.rounds)} rounds of faults, seed {plan.seed}")
    stack = Stack.named(name, workspace, report=say, run_as=f"{name}-faults")
    with own_place(stack, doing=f"faults {name}"):
        stack.environment.start()
        with stack.session() as rehearsal:
            rehearsal.up()
        client = KubeClient.from_kubeconfig(workspace.kubeconfig(stack.place))
        logs = workspace.logs_dir(stack.place)
        environment = FaultEnvironment(client=client, layout=Layout.of(stack.place, workspace), folder=logs)
        _report(run_faults(environment, plan, say=say), plan.seed, logs)


def _report(outcome: FaultRunResult, seed: int, logs: Path) -> None:
    places = ", ".join(f"{count} {place}" for place, count in outcome.places.items())
    say(
        f"At the end: {places}; {outcome.moves} moves, {outcome.restarts} restarts, {outcome.deaths} kills of the "
        f"controller, {outcome.writes} writes by it"
    )
    for problem in outcome.problems:
        say(f"  {problem}")
    for name, seen in outcome.seen.items():
        (logs / f"faults-{name}.log").write_text(seen, encoding="utf-8")
    if outcome.problems:
        raise RehearsalError(
            f"{len(outcome.problems)} invariants do not hold; run it again with --seed {seed}, and read the timeline of "
            f"each such job in {logs}"
        )
    say(
        "Every job is where the state machine says, none is suspended, and no two gangs of a job ran together."
    )
