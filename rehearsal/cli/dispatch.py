"""Finds what a command runs; what only one command needs is imported for it alone."""

from holdfast.rehearsal.cli.arguments import Arguments
from holdfast.simulator.paths import Workspace


def run(arguments: Arguments, workspace: Workspace) -> None:
    """Run a command. Raises RehearsalError or ConfigError for the user."""
    if arguments.command == "down" and arguments.force:
        from holdfast.rehearsal.commands import drop

        drop(arguments.stack, workspace)
    elif arguments.command == "demo":
        from holdfast.rehearsal.output import say
        from holdfast.rehearsal.scenarios import demo

        demo(workspace, arguments.stack, say=say)
    elif arguments.command == "rehearse":
        from holdfast.rehearsal.commands import rehearse

        rehearse(arguments.stack, workspace)
    elif arguments.command == "crash":
        from tests.soak.crash.command import crash

        crash(arguments, workspace)
    elif arguments.command == "chaos":
        from tests.soak.faults.command import chaos

        chaos(arguments, workspace)
    elif arguments.command == "bench":
        from tests.soak.bench.command import bench

        bench(arguments, workspace)
    else:
        _on_a_stack(arguments, workspace)


def _on_a_stack(arguments: Arguments, workspace: Workspace) -> None:
    from holdfast.rehearsal import commands
    from holdfast.rehearsal.commands import down
    from holdfast.rehearsal.output import color, say
    from holdfast.simulator.pulumi import Audience
    from holdfast.simulator.stacks import Stack

    does = {
        "preview": commands.preview,
        "up": commands.up,
        "refresh": commands.refresh,
        "destroy": commands.destroy,
        "down": down,
    }
    stack = Stack.named(arguments.stack, workspace, report=say, audience=Audience(show=say, color=color()))
    does[arguments.command](stack)
