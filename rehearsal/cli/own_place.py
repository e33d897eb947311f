"""A place for one run of a stack, apart from where it is up; nothing is left of it."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager

from holdfast.rehearsal.cli.output import say
from holdfast.simulator.control_plane.processes import exclusive_lock
from holdfast.simulator.stacks import Stack


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
