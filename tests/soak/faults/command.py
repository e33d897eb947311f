"""The command that has everything fail around many jobs on a ladder."""

import os
from pathlib import Path

from holdfast.rehearsal.cli.arguments import Arguments

from holdfast.rehearsal.commands import own_place
from holdfast.rehearsal.output import say
from holdfast.simulator.control_plane.configuration import Layout
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.paths import Workspace
from holdfast.simulator.stacks import Stack
from tests.soak.faults.environment import Ground
from tests.soak.faults.invariants import Outcome
from tests.soak.faults.plan import draw_plan
from tests.soak.faults.run import run_faults
from tests.soak.seeds import SEED_VARIABLE, seed_of


def chaos(arguments: Arguments, workspace: Workspace) -> None:
    """Bring the stack up on a control plane of its own, give it the faults of a seed, and judge what became of its jobs.

    Raises RehearsalError where a job is not where the ladder's own function says, or two gangs of one were alive together.
    """
    plan = draw_plan(
        seed_of(arguments.seed, os.environ.get(SEED_VARIABLE)),
        jobs=arguments.jobs or 1,
        rounds=arguments.rounds,
    )
    say(f"{plan.jobs} jobs, {len(plan.rounds)} rounds of faults, seed {plan.seed}")
    stack = Stack.named(arguments.stack, workspace, report=say, run_as=f"{arguments.stack}-chaos")
    with own_place(stack, doing=f"chaos {arguments.stack}"):
        stack.environment.start()
        with stack.session() as rehearsal:
            rehearsal.up()
        client = KubeClient.from_kubeconfig(workspace.kubeconfig(stack.place))
        logs = workspace.logs_dir(stack.place)
        ground = Ground(client=client, layout=Layout.of(stack.place, workspace), folder=logs)
        _judge(run_faults(ground, plan, say=say), plan.seed, logs)


def _judge(outcome: Outcome, seed: int, logs: Path) -> None:
    places = ", ".join(f"{count} {place}" for place, count in outcome.places.items())
    say(
        f"In the end: {places}; {outcome.moves} moves, {outcome.restarts} restarts, {outcome.deaths} deaths of the "
        f"controller, which made {outcome.writes} writes"
    )
    for problem in outcome.problems:
        say(f"  {problem}")
    for name, seen in outcome.seen.items():
        (logs / f"chaos-{name}.log").write_text(seen, encoding="utf-8")
    if outcome.problems:
        raise RehearsalError(
            f"{len(outcome.problems)} things went wrong; the faults are those of --seed {seed}, and what was seen of "
            f"each such job is in {logs}"
        )
    say(
        "Every job is where the ladder's own function says, none is suspended, and no two gangs of one were alive together."
    )
