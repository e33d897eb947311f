"""The commands that run the engine on a stack."""

import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from holdfast.rehearsal.lifecycle import Course
from holdfast.rehearsal.lifecycle.run import Programme
from holdfast.rehearsal.output import color, say
from holdfast.scheduling.json import Json
from holdfast.simulator.control_plane.processes import exclusive_lock
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi import Audience, EngineFailure, Outcome, Verdict
from holdfast.simulator.pulumi.folder import EngineFolder
from holdfast.simulator.stacks import Stack, Surroundings


def preview(stack: Stack) -> None:
    """Show the engine's plan, then the policies' verdicts, then a summary."""
    say(f"The plan of {stack.name}, by the real engine; every cloud is a stand-in.")
    with stack.surroundings.lent(), stack.session() as rehearsal:
        try:
            outcome = rehearsal.preview()
        except EngineFailure as failure:
            say_verdicts(failure.outcome)
            raise
    say_verdicts(outcome)
    _say_summary(outcome)


def up(stack: Stack) -> None:
    """Bring up the stack, and what it needs around it first."""
    stack.surroundings.start()
    with stack.session() as rehearsal:
        _run(rehearsal.up)
    kubeconfig = stack.kubeconfig.relative_to(stack.workspace.project_root)
    say(f"Its API server: export KUBECONFIG={kubeconfig}")


def refresh(stack: Stack) -> None:
    """Read what there is into the stack's state."""
    stack.surroundings.start()
    with stack.session() as rehearsal:
        _run(rehearsal.refresh)


def destroy(stack: Stack) -> None:
    """Remove the stack's resources; what is around them stays."""
    stack.surroundings.start()
    with stack.session() as rehearsal:
        _run(rehearsal.destroy)


def _run(command: Callable[[], Outcome]) -> None:
    _say_summary(command())


def say_verdicts(outcome: Outcome) -> None:
    """Show what the policies say of a plan."""
    say()
    say("Policies")
    for line in verdict_lines(outcome):
        say(line)


def _say_summary(outcome: Outcome) -> None:
    say()
    for line in summary(outcome):
        say(line)


# The engine's operations, as one says them of the past and of a plan.
_WORDS: Mapping[str, tuple[str, str]] = {
    "create": ("created", "to create"),
    "update": ("updated", "to update"),
    "delete": ("deleted", "to delete"),
    "replace": ("replaced", "to replace"),
    "import": ("imported", "to import"),
    "read": ("read", "to read"),
    "same": ("unchanged", "unchanged"),
}


def summary(outcome: Outcome) -> list[str]:
    """Return the lines that end a command: changes, policies, time."""
    title = f"{outcome.command} of {outcome.stack}"
    indent = " " * (len(title) + 2)
    judged = [f"{indent}{policies(outcome)}"] if outcome.packs else []
    return [f"{title}: {changes(outcome)}", *judged, f"{indent}{outcome.seconds:.0f} s"]


def changes(outcome: Outcome) -> str:
    """Return what was changed, or would be: `3 created, 12 unchanged`."""
    tense = 1 if outcome.command == "preview" else 0
    counted = {word: count for word, count in outcome.changes.items() if count}
    # A replacement counts as one: its two halves are steps of it.
    told = [f"{counted[word]} {says[tense]}" for word, says in _WORDS.items() if word in counted]
    return ", ".join(told) or "nothing to do"


def policies(outcome: Outcome) -> str:
    """Return who judged, and how many violations there are."""
    if not outcome.packs:
        return "no policy pack judged it"
    packs = ", ".join(f"{name} {version}" for name, version in outcome.packs.items())
    stopping = sum(verdict.stops for verdict in outcome.verdicts)
    advice = len(outcome.verdicts) - stopping
    return f"policies {packs}: {stopping} mandatory, {advice} advisory violations"


def verdict_lines(outcome: Outcome) -> list[str]:
    """Return the policies' verdicts, the ones that stop the run first."""
    if not outcome.verdicts:
        return [f"  {policies(outcome)}"]
    ordered = sorted(outcome.verdicts, key=lambda verdict: not verdict.stops)
    return [line for verdict in ordered for line in _told(verdict)]


def output_lines(outputs: Json) -> list[str]:
    """Return a line for each output of the stack; secrets are hidden already."""
    return [f"  {name}: {value}" for name, value in sorted(outputs.items())]


def _told(verdict: Verdict) -> list[str]:
    where = verdict.urn.rsplit("::", 1)[-1] if verdict.urn else "the stack"
    head = f"  {verdict.level.upper()}  {verdict.policy}  ({where})"
    return [head, *(f"      {line}" for line in verdict.message.splitlines() if line.strip())]


def down(stack: Stack) -> None:
    """Destroy through the engine, in the program's own order, then end every process.

    Where the API server is dead its objects cannot be removed one by one: they, and the engine's record of
    them, are dropped as a whole. Harmless when nothing is there. Where destroying fails the processes stay, so
    that one can look, and EngineFailure is raised.
    """
    if not stack.holds_resources():
        say(f"{stack.name} holds no resources.")
    elif stack.surroundings.answers():
        _destroy(stack)
    else:
        say(f"The API server of {stack.name} is dead: what it held goes with it.")
        forget(stack.place, stack.workspace)
    stack.surroundings.remove()
    say(f"{stack.name} is down: no process of it is left.")


def drop(name: str, workspace: Workspace) -> None:
    """End every process of a stack and forget what it held, whatever state it is in."""
    Surroundings(stack=name, workspace=workspace, report=say).remove()
    forget(name, workspace)
    say(f"{name} is dropped: no process of it is left, and nothing of what it held.")


def forget(name: str, workspace: Workspace) -> None:
    """Drop the engine's state of a stack, and its stand-in clouds."""
    shutil.rmtree(EngineFolder.of(name, workspace).root, ignore_errors=True)


def _destroy(stack: Stack) -> None:
    try:
        destroy(stack)
    except RehearsalError:
        say(
            f"{stack.name} is still up. `python -m holdfast.rehearsal down {stack.name} --force` drops it as it is."
        )
        raise


@contextmanager
def own_place(stack: Stack, *, doing: str) -> Generator[None]:
    """Hold the stack's place while the body runs; nobody else runs in it.

    What an interrupted run left there is dropped first. In whatever way the body ends, every process is ended and all
    that was made is dropped; of one that failed the logs are kept. Raises RehearsalError where the place is held.
    """
    with exclusive_lock(stack.workspace.state_dir / f"{stack.place}.lock", doing=doing):
        _drop(stack)
        try:
            yield
        except BaseException:
            _drop(stack, keeping_logs=True)
            say(f"What its operators said is in {stack.workspace.logs_dir(stack.place)}.")
            raise
        _drop(stack)


def _drop(stack: Stack, *, keeping_logs: bool = False) -> None:
    """End every process and drop what was made, in whatever state it is."""
    stack.surroundings.remove()
    shutil.rmtree(stack.folder.root, ignore_errors=True)
    if not keeping_logs:
        shutil.rmtree(stack.workspace.stack_dir(stack.place), ignore_errors=True)


def rehearse(name: str, workspace: Workspace) -> None:
    """Rehearse a stack: preview, up, a second up, a job that loses its node, refresh, destroy.

    Runs apart from a stack of that name that is up, which is left alone. Raises RehearsalError where an act shows
    what it should not. In whatever way it ends, every process is ended and all that was made is dropped; of one
    that failed the logs are kept.
    """
    place = f"{name}-rehearsal"
    audience = Audience(show=say, color=color())
    stack = Stack.named(name, workspace, report=say, run_as=place, audience=audience)
    course = Course(stack=stack, programme=Programme(announce=_announce), judge=say_verdicts, say=say)
    with own_place(stack, doing=f"rehearse {name}"):
        say(f"Rehearsing {name}: the real engine, stand-in clouds, an API server of its own.")
        try:
            stack.surroundings.start()
            course.play()
        finally:
            _say_end(course)


def _announce(act: str) -> None:
    say(f"\n=== {act}")


def _say_end(course: Course) -> None:
    say(f"\nRehearsal of {course.stack.name}")
    say(course.programme.table())
    for remark in course.remarks:
        say(f"Not shown here: {remark}.")
