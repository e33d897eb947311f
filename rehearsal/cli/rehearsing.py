"""The command that plays the whole life of a stack on a control plane of its own, and leaves nothing."""

from holdfast.rehearsal.cli.commands import say_verdicts
from holdfast.rehearsal.cli.output import color, say
from holdfast.rehearsal.cli.own_place import own_place
from holdfast.rehearsal.lifecycle import Course
from holdfast.rehearsal.lifecycle.acts import Programme
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi import Audience
from holdfast.simulator.stacks import Stack


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
