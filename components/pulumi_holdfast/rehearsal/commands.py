"""The commands of `holdfast` that run a stack on this machine, through the real Pulumi engine."""

import argparse
import os
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import TRAINING, TRAINING_VALUE
from pulumi_holdfast.rehearsal.clouds.answers import NO_ANSWERS, Answers
from pulumi_holdfast.rehearsal.control_plane.processes import exclusive_lock
from pulumi_holdfast.rehearsal.engine import Audience, CommandOutcome, EngineFailure, PolicyVerdict
from pulumi_holdfast.rehearsal.engine.settings import read_yaml
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.errors import FAILURES, RehearsalError
from pulumi_holdfast.rehearsal.lifecycle.program_run import ProgramRun, read_existing
from pulumi_holdfast.rehearsal.lifecycle.run import LifecycleRun, StepReport
from pulumi_holdfast.rehearsal.lifecycle.two_stacks import TwoStackRun, connected
from pulumi_holdfast.rehearsal.output import color, detail, logged, say, silence_libraries
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.scenarios.demo import demo
from pulumi_holdfast.rehearsal.scenarios.ladder_walk import steps_picture, walk_picture
from pulumi_holdfast.rehearsal.stacks import Stack, StackEnvironment
from pulumi_holdfast.rehearsal.stacks.existing_cluster import make_existing_cluster
from pulumi_holdfast.rehearsal.stacks.user_program import PROJECT_FILE, UserProgram
from pulumi_holdfast.rehearsal.timeline.picture import render_svg

#: The policy that has a verdict for each training namespace.
_VERDICTS: Final = "training-verdicts"
_NO_VERDICT: Final = "nothing is judged: "
_NOTHING_JUDGED: Final = f"""\
The policies judged no training namespace. These lines make one, with a ladder that ends on-demand:
  kind: Namespace       metadata: {{name: NAMESPACE, labels: {{{TRAINING}: "{TRAINING_VALUE}"}}}}
  kind: FallbackPolicy  metadata: {{name: ladder, namespace: NAMESPACE}}  spec: {{tiers: [{{pool: SPOT, procurementTimeout: 10m}}, {{pool: CPU}}]}}"""
# The engine's operations: what a run did, and what a preview would do.
_OPERATIONS: Final[Mapping[str, tuple[str, str]]] = {
    "create": ("created", "to create"),
    "update": ("updated", "to update"),
    "delete": ("deleted", "to delete"),
    "replace": ("replaced", "to replace"),
    "import": ("imported", "to import"),
    "read": ("read", "to read"),
    "same": ("unchanged", "unchanged"),
}


# --- entry points of the command line -------------------------------------------------------------


def preview_stack(parsed: argparse.Namespace) -> int:
    """`holdfast rehearse preview STACK`."""
    return _on_a_stack(parsed, preview)


def up_stack(parsed: argparse.Namespace) -> int:
    """`holdfast rehearse up STACK`."""
    return _on_a_stack(parsed, up)


def refresh_stack(parsed: argparse.Namespace) -> int:
    """`holdfast rehearse refresh STACK`."""
    return _on_a_stack(parsed, refresh)


def destroy_stack(parsed: argparse.Namespace) -> int:
    """`holdfast rehearse destroy STACK`."""
    return _on_a_stack(parsed, destroy)


def down_stack(parsed: argparse.Namespace) -> int:
    """`holdfast rehearse down STACK [--force]`."""
    if not parsed.force:
        return _on_a_stack(parsed, down)
    drop(parsed.stack, enter_workspace())
    return 0


def demo_stack(parsed: argparse.Namespace) -> int:
    """`holdfast rehearse demo STACK [--picture FILE]`."""
    workspace = enter_workspace()
    with _logged(parsed, parsed.stack, workspace):
        result = demo(workspace, parsed.stack, say=say)
        steps = workspace.logs_dir(parsed.stack) / "training-steps.svg"
        steps.write_text(steps_picture(result.ladder), encoding="utf-8")
        say(f"the training's steps over time: {steps}")
        if parsed.picture is not None:
            parsed.picture.write_text(render_svg(walk_picture(result.ladder)), encoding="utf-8")
            say(f"picture: {parsed.picture}")
    return 0


def rehearse_stack(parsed: argparse.Namespace) -> int:
    """`holdfast rehearse STACK [--to STACK]`, or `holdfast rehearse FOLDER [--stack NAME] [--existing PATH] [--plugin PACKAGE]`."""
    folder = Path(parsed.target)
    if (folder / PROJECT_FILE).is_file() and parsed.to is None:
        silence_libraries()
        program = UserProgram.in_folder(folder)
        with _logged(parsed, "program", Workspace(project_root=program.folder)):
            rehearse_program(
                program,
                parsed.stack,
                existing=read_existing(parsed.existing),
                plugins=parsed.plugin,
                answers=NO_ANSWERS if parsed.answers is None else Answers.read(parsed.answers),
                charts=parsed.charts,
            )
        return 0
    if parsed.stack or parsed.plugin or parsed.answers or parsed.charts:
        raise RehearsalError(
            f"{folder / PROJECT_FILE} does not exist; name the folder of a program with --stack, --plugin, --answers and --charts"
        )
    workspace = enter_workspace()
    with _logged(parsed, parsed.target, workspace):
        if parsed.to is not None:
            rehearse_two(parsed.target, parsed.to, workspace)
        else:
            rehearse(parsed.target, workspace, owners=_owners(parsed.existing))
    return 0


def _owners(files: Sequence[Path]) -> Json:
    """The sections in which the owner of an existing cluster differs from what a rehearsal makes."""
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        raise RehearsalError(
            f"--existing {missing[0]}: the file does not exist; name a YAML file with sections of a stack file"
        )
    return {section: value for file in files for section, value in read_yaml(file).items()}


def enter_workspace() -> Workspace:
    """Return the checkout around the current directory, and make its root the current directory.

    The program's paths are relative to the project, wherever the command runs. Raises RehearsalError outside a checkout.
    """
    silence_libraries()
    workspace = Workspace.find()
    os.chdir(workspace.project_root)
    return workspace


def _on_a_stack(parsed: argparse.Namespace, command: Callable[[Stack], None]) -> int:
    workspace = enter_workspace()
    with _logged(parsed, parsed.stack, workspace):
        command(Stack.named(parsed.stack, workspace, report=say, audience=_audience()))
    return 0


def _logged(parsed: argparse.Namespace, name: str, workspace: Workspace) -> AbstractContextManager[None]:
    return logged(workspace.state_dir / f"{name}-{parsed.verb}.log", verbose=parsed.verbose)


def _audience() -> Audience:
    return Audience(show=detail, color=color())


# --- commands -------------------------------------------------------------------------------------


def preview(stack: Stack) -> None:
    """Print the policies' verdicts and a summary; the engine's plan is a detail."""
    with ExitStack() as opened:
        opened.enter_context(stack.environment.lent())
        make_existing_cluster(stack, {})
        rehearsal = opened.enter_context(stack.session())
        try:
            outcome = rehearsal.preview()
        except EngineFailure as failure:
            say_verdicts(failure.outcome)
            raise
    say_verdicts(outcome)
    _say_summary(outcome)


def up(stack: Stack) -> None:
    """Bring up the stack, and first the control plane and simulators it needs."""
    stack.environment.start()
    make_existing_cluster(stack, {})
    with stack.session() as rehearsal:
        _say_summary(rehearsal.up())
    stack.environment.wait_until_jobs_are_admitted(stack.kubeconfig)
    kubeconfig = stack.kubeconfig.relative_to(stack.workspace.project_root)
    say(f"To reach its API server: export KUBECONFIG={kubeconfig}")


def refresh(stack: Stack) -> None:
    """Read the actual resources into the stack's state."""
    stack.environment.start()
    with stack.session() as rehearsal:
        _say_summary(rehearsal.refresh())


def destroy(stack: Stack) -> None:
    """Delete the stack's resources; its control plane and simulators keep running."""
    stack.environment.start()
    with stack.session() as rehearsal:
        _say_summary(rehearsal.destroy())


def down(stack: Stack) -> None:
    """Destroy the stack through the engine, then end every process.

    If the API server is dead, its objects cannot be deleted one by one: they and the engine's record of them are
    removed as a whole. Does nothing if the stack is not up. If the destroy fails, the processes keep running for
    inspection, and EngineFailure is raised.
    """
    if not stack.holds_resources():
        say(f"{stack.name} holds no resources.")
    elif stack.environment.answers():
        try:
            destroy(stack)
        except FAILURES:
            say(
                f"{stack.name} is still up. Run `holdfast rehearse down {stack.name} --force` to remove it as it is."
            )
            raise
    else:
        say(f"The API server of {stack.name} is dead: its objects are removed with it.")
        forget(stack.place, stack.workspace)
    stack.environment.remove()
    say(f"{stack.name} is down: no process of it is left.")


def drop(name: str, workspace: Workspace) -> None:
    """End every process of a stack and remove its state, whatever condition it is in."""
    StackEnvironment(stack=name, workspace=workspace, report=say).remove()
    forget(name, workspace)
    say(f"{name} is removed: no process of it is left, and none of its state.")


def forget(name: str, workspace: Workspace) -> None:
    """Remove the engine's state of a stack, and its simulated clouds."""
    shutil.rmtree(EngineFolder.of(name, workspace).root, ignore_errors=True)


def rehearse(name: str, workspace: Workspace, *, owners: Json | None = None) -> None:
    """Run the lifecycle of a stack: preview, up, a second up, a job that loses its node, refresh, destroy.

    `owners` are sections of the stack file of the existing cluster's owner, if the stack uses one.

    Runs apart from a stack of that name that is up. Raises RehearsalError if a step does not show what it must.
    At the end, also after a failure, every process is ended and everything is removed; the logs of a failed run stay.
    """
    stack = _isolated(name, workspace)
    lifecycle = LifecycleRun(
        stack=stack, report=_report(), show_plan=say_plan, say=detail, owners=owners or {}
    )
    _rehearse(lifecycle, stack)


def rehearse_two(home: str, there: str, workspace: Workspace) -> None:
    """Run the lifecycle of two stacks: a job of the first moves to a tier in the second one's cluster, and returns; see `rehearse`."""
    stacks = connected(_isolated(home, workspace), _isolated(there, workspace))
    run = TwoStackRun(home=stacks[0], there=stacks[1], report=_report(), show_plan=say_plan, say=detail)
    _rehearse(run, *stacks)


def _isolated(name: str, workspace: Workspace) -> Stack:
    return Stack.named(name, workspace, report=say, run_as=f"{name}-rehearsal", audience=_audience())


def _report() -> StepReport:
    return StepReport(announce=lambda step: say(f"=== {step}"))


def rehearse_program(
    program: UserProgram,
    stack_name: str | None,
    *,
    existing: Sequence[Json],
    plugins: Sequence[str],
    answers: Answers = NO_ANSWERS,
    charts: Path | None = None,
) -> None:
    """Run the lifecycle of any program: preview, up, a second up, refresh, destroy; see `rehearse`."""
    stack = program.stack(
        stack_name,
        plugins=plugins,
        has_cluster=bool(existing),
        answers=answers,
        charts=charts.resolve() if charts else None,
        report=say,
        audience=_audience(),
    )
    run = ProgramRun(stack=stack, existing=existing, report=_report(), show_plan=_say_program)
    with program.importable():
        _rehearse(run, stack)


def _rehearse(lifecycle: LifecycleRun | ProgramRun | TwoStackRun, *stacks: Stack) -> None:
    title = " and ".join(stack.name for stack in stacks)
    with ExitStack() as places:
        for stack in stacks:
            places.enter_context(own_place(stack, doing=f"rehearse {stack.name}"))
        servers = "an API server of its own" if len(stacks) == 1 else "API servers of their own"
        say(f"Rehearsing {title}: the real engine, simulated clouds, {servers}.")
        try:
            for stack in stacks:
                stack.environment.start()
            lifecycle.run()
        finally:
            say(f"\nRehearsal of {title}")
            say(lifecycle.report.table())
            for remark in lifecycle.remarks:
                say(f"Not simulated: {remark}.")


@contextmanager
def own_place(stack: Stack, *, doing: str) -> Generator[None]:
    """Hold the lock of a stack's folder and ports while the body runs; remove everything of it before and after.

    The logs of a body that fails stay. Raises RehearsalError if another process holds the lock.
    """
    with exclusive_lock(stack.workspace.state_dir / f"{stack.place}.lock", doing=doing):
        _remove(stack)
        try:
            yield
        except BaseException:
            _remove(stack, keep_logs=True)
            say(f"The logs of its operators are in {stack.workspace.logs_dir(stack.place)}.")
            raise
        _remove(stack)


def _remove(stack: Stack, *, keep_logs: bool = False) -> None:
    stack.environment.remove()
    forget(stack.place, stack.workspace)
    if not keep_logs:
        shutil.rmtree(stack.workspace.stack_dir(stack.place), ignore_errors=True)


# --- what a command prints at its end -------------------------------------------------------------


def say_verdicts(outcome: CommandOutcome) -> None:
    """Print the policies' verdicts on a plan."""
    say("Policies")
    for line in verdict_lines(outcome):
        say(line)


def say_plan(outcome: CommandOutcome) -> None:
    """Print what is wrong with the plan of a rehearsal: warnings, and the verdicts that stop it."""
    for line in warning_lines(outcome):
        say(line)
    for verdict in outcome.verdicts:
        for line in _lines(verdict):
            (say if verdict.stops else detail)(line)


def _say_program(outcome: CommandOutcome) -> None:
    """Print what is wrong with the plan of another program, and what makes it judged if nothing was."""
    say_plan(outcome)
    verdicts = [each.message for each in outcome.verdicts if each.policy == _VERDICTS]
    if outcome.packs and all(_NO_VERDICT in message for message in verdicts):
        say(_NOTHING_JUDGED)


def _say_summary(outcome: CommandOutcome) -> None:
    for line in (*warning_lines(outcome), *summary(outcome)):
        say(line)


def warning_lines(outcome: CommandOutcome) -> list[str]:
    """Return the program's warnings, a line each."""
    return [f"warning: {' '.join(each.split()).removeprefix('warning: ')}" for each in outcome.warnings]


def summary(outcome: CommandOutcome) -> list[str]:
    """Return the lines that end a command: changes, policies, time."""
    title = f"{outcome.command} of {outcome.stack}"
    indent = " " * (len(title) + 2)
    verdicts = [f"{indent}{policies(outcome)}"] if outcome.packs else []
    return [f"{title}: {changes(outcome)}", *verdicts, f"{indent}{outcome.seconds:.0f} s"]


def changes(outcome: CommandOutcome) -> str:
    """Return what changed, or would change: `3 created, 12 unchanged`."""
    tense = 1 if outcome.command == "preview" else 0
    counted = {operation: count for operation, count in outcome.changes.items() if count}
    # A replacement counts once: its two halves are steps of it.
    parts = [f"{counted[each]} {words[tense]}" for each, words in _OPERATIONS.items() if each in counted]
    return ", ".join(parts) or "nothing to do"


def policies(outcome: CommandOutcome) -> str:
    """Return which policy packs ran, and what they found."""
    if not outcome.packs:
        return "no policy pack ran"
    packs = ", ".join(f"{name} {version}" for name, version in outcome.packs.items())
    return f"policies {packs}: {outcome.judgement}"


def verdict_lines(outcome: CommandOutcome) -> list[str]:
    """Return the policies' verdicts, mandatory ones first."""
    if not outcome.verdicts:
        return [f"  {policies(outcome)}"]
    ordered = sorted(outcome.verdicts, key=lambda verdict: not verdict.stops)
    return [line for verdict in ordered for line in _lines(verdict)]


def _lines(verdict: PolicyVerdict) -> list[str]:
    resource = verdict.urn.rsplit("::", 1)[-1] if verdict.urn else "the stack"
    head = f"  {verdict.level.upper()}  {verdict.policy}  ({resource})"
    return [head, *(f"      {line}" for line in verdict.message.splitlines() if line.strip())]
