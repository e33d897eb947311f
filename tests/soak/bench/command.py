"""`python -m tests.soak bench`: measures preview and up, the cost of the policy pack, and moves of jobs."""

import os
import platform
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from pulumi_holdfast.rehearsal.commands import own_place
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.output import say
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks import Stack
from tests.soak.bench.engine_command import EMPTY
from tests.soak.bench.measurement import REPETITIONS, Measurement, measure, median_of, render, rows
from tests.soak.bench.moves_report import SIZES, measure_moves
from tests.soak.bench.policy_pack import measure_policies
from tests.soak.command_line import compare_previews, prepared

# In this order, once per round: each starts where the previous one ended.
ROUND = (
    ("preview", "preview of a new stack"),
    ("up", "up of a new stack"),
    ("preview", "preview, no change"),
    ("up", "up, no change"),
    ("destroy", "destroy"),
)
_GIB = 1024**3


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """What to measure. `jobs` is the number of jobs to move; None measures several numbers."""

    stack: str
    jobs: int | None = None
    moves_only: bool = False
    policies_only: bool = False


def bench(options: BenchOptions, workspace: Workspace) -> None:
    """Measure the cost of the policy pack, the commands of a stack and moves of jobs; print tables.

    Each is compared: with the same preview without the pack, with an empty program, with restarts. The last two run on
    a control plane of their own; it and the operators serve every command and are not counted.
    """
    name = f"{options.stack}-bench"
    say(machine())
    if not options.moves_only:
        with prepared(workspace) as cli:
            if cli is not None:
                compare_previews(cli)
        measure_policies(workspace, run_as=f"{name}-policies", say=say)
    if options.policies_only:
        return
    stack = Stack.named(options.stack, workspace, report=say, run_as=name)
    with own_place(stack, doing=f"bench {options.stack}"), _empty_place(f"{name}-empty", workspace):
        stack.environment.start()
        if not options.moves_only:
            _bench_engine(options, workspace, name)
        with stack.session() as rehearsal:
            rehearsal.up()
        measure_moves(stack, (options.jobs,) if options.jobs else SIZES, say=say)


@contextmanager
def _empty_place(name: str, workspace: Workspace) -> Generator[None]:
    """Remove the empty program's stack before and after the body."""
    place = EngineFolder.of(name, workspace).root.parent
    shutil.rmtree(place, ignore_errors=True)
    try:
        yield
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _bench_engine(options: BenchOptions, workspace: Workspace, name: str) -> None:
    """Measure the engine's commands, the stack and the empty program in turn."""
    found: dict[str, dict[str, list[Measurement]]] = {EMPTY: {}, options.stack: {}}
    for repetition in range(REPETITIONS):
        say(f"round {repetition + 1} of {REPETITIONS}")
        for subject, measured in found.items():
            _round(subject, f"{name}-empty" if subject == EMPTY else name, workspace, measured)
    medians = {
        subject: {what: median_of(several) for what, several in measured.items()}
        for subject, measured in found.items()
    }
    for line in render(rows(medians[EMPTY], medians[options.stack], options.stack)):
        say(line)
    say(
        f"Medians of {REPETITIONS}: seconds from the start of Python to its end, and the peak memory of "
        "Python, the engine and the policy pack together. Other load and a slow disk increase both; "
        "the ratios change little."
    )


def machine() -> str:
    """Return the facts of this machine that affect the figures."""
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {psutil.virtual_memory().total / _GIB:.0f} GiB, "
        f"load {os.getloadavg()[0]:.1f} before the run, Python {platform.python_version()}"
    )


def _round(subject: str, run_as: str, workspace: Workspace, measured: dict[str, list[Measurement]]) -> None:
    for command, what in ROUND:
        run = (sys.executable, "-m", "tests.soak.bench.engine_command", subject, command, run_as)
        one = measure(run, cwd=workspace.project_root)
        say(f"  {subject}: {what}: {one.seconds:.1f} s")
        measured.setdefault(what, []).append(one)
