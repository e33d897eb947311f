"""Takes a stack down: its resources through the engine, then every process around it."""

import shutil

from holdfast.rehearsal.cli.commands import destroy
from holdfast.rehearsal.cli.output import say
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi.folder import EngineFolder
from holdfast.simulator.stacks import Stack, Surroundings


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
