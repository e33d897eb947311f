"""The command that measures."""

import os
import platform
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager

import psutil
from holdfast.rehearsal.cli.arguments import Arguments

from holdfast.rehearsal.commands import own_place
from holdfast.rehearsal.output import say
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi.folder import EngineFolder
from holdfast.simulator.stacks import Stack
from tests.soak.bench.engine_command import EMPTY
from tests.soak.bench.measurement import Measurement, measure, median_of, render, rows
from tests.soak.bench.moves_report import SIZES, measure_moves
from tests.soak.bench.policy_pack import measure_policies

# In this order, once a round: each begins where the one before ends.
ROUND = (
    ("preview", "preview of a new stack"),
    ("up", "up of a new stack"),
    ("preview", "preview, no change"),
    ("up", "up, no change"),
    ("destroy", "destroy"),
)
_GIB = 1024**3


def bench(arguments: Arguments, workspace: Workspace) -> None:
    """Measure what the policy pack adds to a preview, the commands of a stack, and moves of jobs; print tables.

    Each beside what it is to be compared with: the same preview, an empty program, restarts. The latter two run on a
    control plane of its own, which, as the operators, is not counted: it serves every command.
    """
    name = f"{arguments.stack}-bench"
    say(machine())
    if not arguments.moves_only:
        measure_policies(workspace, arguments.repetitions, run_as=f"{name}-policies", say=say)
    if arguments.policies_only:
        return
    stack = Stack.named(arguments.stack, workspace, report=say, run_as=name)
    with own_place(stack, doing=f"bench {arguments.stack}"), _empty_place(f"{name}-empty", workspace):
        stack.environment.start()
        if not arguments.moves_only:
            _bench_engine(arguments, workspace, name)
        with stack.session() as rehearsal:
            rehearsal.up()
        measure_moves(stack, (arguments.jobs,) if arguments.jobs else SIZES, say=say)


@contextmanager
def _empty_place(name: str, workspace: Workspace) -> Generator[None]:
    """Have nothing of the empty program's stack before the body nor after it."""
    place = EngineFolder.of(name, workspace).root.parent
    shutil.rmtree(place, ignore_errors=True)
    try:
        yield
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _bench_engine(arguments: Arguments, workspace: Workspace, name: str) -> None:
    """Measure the engine's commands turn by turn."""
    found: dict[str, dict[str, list[Measurement]]] = {EMPTY: {}, arguments.stack: {}}
    for repetition in range(arguments.repetitions):
        say(f"round {repetition + 1} of {arguments.repetitions}")
        for subject, measured in found.items():
            _round(subject, f"{name}-empty" if subject == EMPTY else name, workspace, measured)
    medians = {
        subject: {what: median_of(several) for what, several in measured.items()}
        for subject, measured in found.items()
    }
    for line in render(rows(medians[EMPTY], medians[arguments.stack], arguments.stack)):
        say(line)
    say(
        f"Medians of {arguments.repetitions}: seconds from the start of Python to its end, and the most memory held "
        "by Python, the engine and the policy pack together. Both grow with other load on the cores and with "
        "a slow disk; their ratios hardly do."
    )


def machine() -> str:
    """Return the facts of this machine that matter to the figures."""
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {psutil.virtual_memory().total / _GIB:.0f} GiB, "
        f"load {os.getloadavg()[0]:.1f} before the start, Python {platform.python_version()}"
    )


def _round(subject: str, run_as: str, workspace: Workspace, measured: dict[str, list[Measurement]]) -> None:
    for command, what in ROUND:
        run = (sys.executable, "-m", "tests.soak.bench.engine_command", subject, command, run_as)
        one = measure(run, cwd=workspace.project_root)
        say(f"  {subject}: {what}: {one.seconds:.1f} s")
        measured.setdefault(what, []).append(one)
