"""`python -m tests.soak faults`: runs many jobs on a ladder while everything around them fails."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pulumi_holdfast.rehearsal.commands import own_place
from pulumi_holdfast.rehearsal.control_plane.configuration import Layout
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.output import say
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks import Stack
from pulumi_holdfast.rehearsal.timeline.picture import render_svg
from tests.soak.faults.both_sides import TwoClusterResult
from tests.soak.faults.environment import FaultEnvironment
from tests.soak.faults.invariants import FaultRunResult
from tests.soak.faults.manifests import plain_jobs
from tests.soak.faults.plan import draw_plan
from tests.soak.faults.run import run_faults
from tests.soak.faults.two_clusters import run_two_clusters, two_environments
from tests.soak.faults.two_plan import draw_two_clusters
from tests.soak.seeds import SEED_VARIABLE, seed_of


def faults(workspace: Workspace, *, seed: int | None, jobs: int, rounds: int) -> None:
    """Bring the local stack up on a control plane of its own, inject the faults of a seed, and check every job.

    Raises RehearsalError if a job is not where the ladder's state machine says, or two gangs of one ran together.
    """
    plan = draw_plan(seed_of(seed, os.environ.get(SEED_VARIABLE)), jobs=jobs, rounds=rounds)
    say(f"{plan.jobs} jobs, {len(plan.rounds)} rounds of faults, seed {plan.seed}")
    stack = Stack.named("local", workspace, report=say, run_as="local-faults")
    with own_place(stack, doing="faults local"):
        stack.environment.start()
        with stack.session() as rehearsal:
            rehearsal.up()
        client = KubeClient.from_kubeconfig(workspace.kubeconfig(stack.place))
        logs = workspace.logs_dir(stack.place)
        environment = FaultEnvironment(client=client, layout=Layout.of(stack.place, workspace), folder=logs)
        _report(run_faults(environment, plan, say=say), plan.seed, logs)


def two_cluster_faults(
    workspace: Workspace, *, seed: int | None, jobs: int, faults: int, picture: Path | None = None
) -> None:
    """Bring up two clusters, inject the faults of a seed in both and between them, and check every job.

    `picture` receives the SVG of a job that went to the other cluster and back.

    Raises RehearsalError if a job had pods in both at once, is lost or suspended, or the ledgers do not add up.
    """
    numbers = plain_jobs(jobs)
    plan = draw_two_clusters(seed_of(seed, os.environ.get(SEED_VARIABLE)), jobs=numbers, faults=faults)
    say(f"{jobs} jobs, {plan.faults} faults in {len(plan.rounds)} rounds, seed {plan.seed}")
    with TemporaryDirectory() as folder, two_environments(Path(folder)) as environments:
        outcome = run_two_clusters(environments, plan, say=say)
    if picture is not None and outcome.picture is not None:
        picture.write_text(render_svg(outcome.picture), encoding="utf-8")
    _report_both(outcome, plan.seed, workspace.logs_dir("two-clusters"))


def _report_both(outcome: TwoClusterResult, seed: int, logs: Path) -> None:
    places = ", ".join(f"{count} {place}" for place, count in outcome.places.items())
    hit = ", ".join(f"{count} {fault.value}" for fault, count in sorted(outcome.requests.items()))
    say(
        f"At the end: {places}; {outcome.moves} moves, {outcome.transfers} to the other cluster and {outcome.returns} from it; "
        f"{outcome.deaths} kills of controllers; requests between the clusters: {hit}"
    )
    say(
        f"Checked: {outcome.looks} comparisons of the pods of both clusters, {outcome.ledgers} written ledgers"
    )
    _write_evidence(outcome.problems, outcome.seen, seed, logs)
    say("No job ran in both clusters at once, none is lost or suspended, and the ledgers add up over both.")


def _report(outcome: FaultRunResult, seed: int, logs: Path) -> None:
    places = ", ".join(f"{count} {place}" for place, count in outcome.places.items())
    say(
        f"At the end: {places}; {outcome.moves} moves, {outcome.restarts} restarts, {outcome.deaths} kills of the "
        f"controller, {outcome.writes} writes by it"
    )
    _write_evidence(outcome.problems, outcome.seen, seed, logs)
    say(
        "Every job is where the state machine says, none is suspended, and no two gangs of a job ran together."
    )


def _write_evidence(problems: Sequence[str], seen: Mapping[str, str], seed: int, logs: Path) -> None:
    for problem in problems:
        say(f"  {problem}")
    logs.mkdir(parents=True, exist_ok=True)
    for name, timeline in seen.items():
        (logs / f"faults-{name}.log").write_text(timeline, encoding="utf-8")
    if problems:
        raise RehearsalError(
            f"{len(problems)} invariants do not hold; run it again with --seed {seed}, and read the timelines of the jobs "
            f"in {logs}"
        )
