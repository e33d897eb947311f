"""`python -m tests.soak faults`: runs many jobs on a ladder while everything around them fails."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pulumi_holdfast.rehearsal.commands import own_place
from pulumi_holdfast.rehearsal.control_plane.configuration import Layout
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.output import say
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks import Stack
from tests.soak.faults.environment import FaultEnvironment
from tests.soak.faults.invariants import FaultRunResult
from tests.soak.faults.manifests import plain_jobs
from tests.soak.faults.plan import Side, draw_plan, draw_two_clusters
from tests.soak.faults.run import run_faults
from tests.soak.faults.two_clusters import two_environments
from tests.soak.seeds import SEED_VARIABLE, seed_of


def faults(workspace: Workspace, *, seed: int | None, jobs: int, rounds: int, two: int | None) -> None:
    """Inject the faults of a seed in the local stack, or `two` of them in two clusters and between them, and check every job.

    Raises RehearsalError if a job is not where the ladder's state machine says, ran twice at once, is lost or suspended, or
    if the ledgers do not add up.
    """
    drawn = seed_of(seed, os.environ.get(SEED_VARIABLE))
    if two:
        plan = draw_two_clusters(drawn, jobs=plain_jobs(jobs), faults=two)
        logs, started = workspace.logs_dir("two-clusters"), _two_clusters()
    else:
        plan = draw_plan(drawn, jobs=jobs, rounds=rounds)
        stack = Stack.named("local", workspace, report=say, run_as="local-faults")
        logs, started = workspace.logs_dir(stack.place), _local_stack(stack, workspace)
    say(f"{jobs} jobs, {plan.faults} faults in {len(plan.rounds)} rounds, seed {plan.seed}")
    with started as environments:
        _report(run_faults(environments, plan, say=say), plan.seed, logs)


@contextmanager
def _local_stack(stack: Stack, workspace: Workspace) -> Generator[Mapping[Side, FaultEnvironment]]:
    """Bring the local stack up on a control plane of its own for the length of the block."""
    with own_place(stack, doing="faults local"):
        stack.environment.start()
        with stack.session() as rehearsal:
            rehearsal.up()
        client = KubeClient.from_kubeconfig(workspace.kubeconfig(stack.place))
        layout, logs = Layout.of(stack.place, workspace), workspace.logs_dir(stack.place)
        yield {Side.HOME: FaultEnvironment(client=client, layout=layout, folder=logs)}


@contextmanager
def _two_clusters() -> Generator[Mapping[Side, FaultEnvironment]]:
    with TemporaryDirectory() as folder, two_environments(Path(folder)) as environments:
        yield environments


def _report(outcome: FaultRunResult, seed: int, logs: Path) -> None:
    places = ", ".join(f"{count} {place}" for place, count in outcome.places.items())
    say(
        f"At the end: {places}; {outcome.moves} moves, {outcome.restarts} restarts, {outcome.deaths} kills of "
        f"controllers, {outcome.writes} writes, {outcome.ledgers} written ledgers"
    )
    if outcome.looks:
        hit = ", ".join(f"{count} {fault.value}" for fault, count in sorted(outcome.requests.items()))
        say(
            f"Between the clusters: {outcome.transfers} transfers and {outcome.returns} returns; requests: {hit}; "
            f"{outcome.looks} comparisons of the pods of both"
        )
    for problem in outcome.problems:
        say(f"  {problem}")
    logs.mkdir(parents=True, exist_ok=True)
    for name, timeline in outcome.seen.items():
        (logs / f"faults-{name}.log").write_text(timeline, encoding="utf-8")
    if outcome.problems:
        raise RehearsalError(
            f"{len(outcome.problems)} invariants do not hold; run it again with --seed {seed}, and read the timelines of the "
            f"jobs in {logs}"
        )
    say("Every job is where the state machine says, none is lost or suspended, and none ran twice at once.")
