"""`python -m tests.soak bench`: measures previews of the local stack and moves of jobs."""

import os
import platform

import psutil

from pulumi_holdfast.rehearsal.commands import own_place
from pulumi_holdfast.rehearsal.output import say
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks import Stack
from tests.soak.bench.moves_report import SIZES, measure_moves
from tests.soak.command_line import compare_previews, prepared

_STACK = "local"
_GIB = 1024**3


def bench(workspace: Workspace, *, jobs: int | None, moves_only: bool) -> None:
    """Compare previews with those of ConfigMaps, and moves of `jobs` or of several numbers of jobs with restarts; print tables.

    Moves run on a control plane of their own.
    """
    say(machine())
    if not moves_only:
        with prepared(workspace) as cli:
            if cli is not None:
                compare_previews(cli)
    stack = Stack.named(_STACK, workspace, report=say, run_as=f"{_STACK}-bench")
    with own_place(stack, doing=f"bench {_STACK}"):
        stack.environment.start()
        with stack.session() as rehearsal:
            rehearsal.up()
        measure_moves(stack, (jobs,) if jobs else SIZES, say=say)


def machine() -> str:
    """Return the facts of this machine that affect the figures."""
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {psutil.virtual_memory().total / _GIB:.0f} GiB, "
        f"load {os.getloadavg()[0]:.1f} before the run, Python {platform.python_version()}"
    )
