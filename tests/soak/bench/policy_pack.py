"""Measures previews with the policy pack, with an empty one and with none."""

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.soak.bench.measurement import REPETITIONS, Measurement, cheapest, measure, render
from tests.soak.bench.policy_preview import EMPTY, PACKS, WITH, WITHOUT

SIZES: Final = (100, 1_000, 5_000)
_HEAD: Final = ("preview of", "pack", "time", "CPU", "memory", "CPU to no pack", "to the empty pack")
_MIB: Final = 1024 * 1024


def measure_policies(workspace: Workspace, *, run_as: str, say: Callable[[str], None]) -> None:
    """Measure previews of a generated program, in turn with each pack, and print the table.

    Every other turn is in the opposite order: a machine that gets warm or busy slows neither pack more than the other.
    """
    found: dict[int, Mapping[str, Measurement]] = {}
    try:
        for size in SIZES:
            turns: dict[str, list[Measurement]] = {subject: [] for subject in PACKS}
            for repetition in range(REPETITIONS):
                for subject in list(turns)[:: -1 if repetition % 2 else 1]:
                    command = (sys.executable, "-m", "tests.soak.bench.policy_preview")
                    one = measure((*command, str(size), subject, run_as), cwd=workspace.project_root)
                    say(f"  preview of {size} resources {subject}: {one.cpu_seconds:.2f} s of CPU")
                    turns[subject].append(one)
            found[size] = {subject: cheapest(several) for subject, several in turns.items()}
    finally:
        shutil.rmtree(EngineFolder.of(run_as, workspace).root.parent, ignore_errors=True)
    for line in render(pack_rows(found)):
        say(line)
    say(
        f"The cheapest of {REPETITIONS}, by CPU: the same preview without a policy pack, with one that has a single empty policy, and with "
        "this one. Seconds from the start of Python to its end, CPU seconds and peak memory of Python, the engine and the pack "
        "together. The provider is an echo: previews with a real one take longer, and a pack adds the same."
    )


def pack_rows(found: Mapping[int, Mapping[str, Measurement]]) -> list[Sequence[str]]:
    """Return the table, header first: each size with each pack, compared by CPU time."""
    return [
        _HEAD,
        *(_row(size, subject, one, costs) for size, costs in found.items() for subject, one in costs.items()),
    ]


def _row(size: int, subject: str, one: Measurement, costs: Mapping[str, Measurement]) -> tuple[str, ...]:
    return (
        f"{size} resources",
        subject,
        f"{one.seconds:.1f} s",
        f"{one.cpu_seconds:.2f} s",
        f"{one.peak_bytes / _MIB:.0f} MiB",
        f"{one.cpu_seconds / costs[WITHOUT].cpu_seconds:.2f}",
        f"{one.cpu_seconds / costs[EMPTY].cpu_seconds:.2f}" if subject == WITH else "–",
    )
