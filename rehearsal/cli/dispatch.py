"""Finds what a command runs; what only one command needs is imported for it alone."""

from holdfast.rehearsal.cli.arguments import Arguments
from holdfast.simulator.paths import Workspace


def run(arguments: Arguments, workspace: Workspace) -> None:
    """Run a command. Raises RehearsalError or ConfigError for the user."""
    if arguments.command == "down" and arguments.force:
        from holdfast.rehearsal.cli.taking_down import drop

        drop(arguments.stack, workspace)
    elif arguments.command == "demo":
        from holdfast.rehearsal.cli.output import say
        from holdfast.rehearsal.scenarios import demo

        demo(workspace, arguments.stack, say=say)
    elif arguments.command == "rehearse":
        from holdfast.rehearsal.cli.rehearsing import rehearse

        rehearse(arguments.stack, workspace)
    elif arguments.command == "crash":
        from holdfast.rehearsal.cli.crashing import crash

        crash(arguments, workspace)
    elif arguments.command == "chaos":
        from holdfast.rehearsal.cli.faulting import chaos

        chaos(arguments, workspace)
    elif arguments.command == "bench":
        from tests.soak.bench.measuring import bench

        bench(arguments, workspace)
    else:
        _on_a_stack(arguments, workspace)


def _on_a_stack(arguments: Arguments, workspace: Workspace) -> None:
    from holdfast.rehearsal.cli import commands
    from holdfast.rehearsal.cli.output import color, say
    from holdfast.rehearsal.cli.taking_down import down
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
