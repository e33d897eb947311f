"""Measures previews with the policy pack and without it."""

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Final

from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi.workspace import EngineFolder
from tests.soak.bench.measurement import Measurement, measure, median_of, render
from tests.soak.bench.policy_preview import WITH, WITHOUT

SIZES: Final = (100, 1_000, 5_000)
_HEAD: Final = (
    "preview of",
    "without",
    "with",
    "ratio",
    "CPU without",
    "with",
    "ratio",
    "memory without",
    "with",
)
_MIB: Final = 1024 * 1024


def measure_policies(
    workspace: Workspace, repetitions: int, *, run_as: str, say: Callable[[str], None]
) -> None:
    """Measure previews of a generated program, in turn with the pack and without it, and print the table."""
    found: list[tuple[int, Measurement, Measurement]] = []
    try:
        for size in SIZES:
            turns: dict[str, list[Measurement]] = {WITHOUT: [], WITH: []}
            for _ in range(repetitions):
                for pack, measured in turns.items():
                    command = (sys.executable, "-m", "tests.soak.bench.policy_preview")
                    one = measure((*command, str(size), pack, run_as), cwd=workspace.project_root)
                    say(f"  preview of {size} resources {pack} the pack: {one.seconds:.1f} s")
                    measured.append(one)
            found.append((size, median_of(turns[WITHOUT]), median_of(turns[WITH])))
    finally:
        shutil.rmtree(EngineFolder.of(run_as, workspace).root.parent, ignore_errors=True)
    for line in render(pack_rows(found)):
        say(line)
    say(
        f"Medians of {repetitions}: the same preview with and without the policy pack. Seconds from the start of Python to its "
        "end, CPU seconds and peak memory of Python, the engine and the pack together. The provider "
        "is an echo: previews with a real one take longer, and the pack adds the same."
    )


def pack_rows(found: Sequence[tuple[int, Measurement, Measurement]]) -> list[Sequence[str]]:
    """Return the table, header first: each size without the pack and with it."""
    return [_HEAD, *(_row(*each) for each in found)]


def _row(size: int, without: Measurement, with_pack: Measurement) -> tuple[str, ...]:
    return (
        f"{size} resources",
        f"{without.seconds:.1f} s",
        f"{with_pack.seconds:.1f} s",
        f"{with_pack.seconds / without.seconds:.2f}",
        f"{without.cpu_seconds:.1f} s",
        f"{with_pack.cpu_seconds:.1f} s",
        f"{with_pack.cpu_seconds / without.cpu_seconds:.2f}",
        f"{without.peak_bytes / _MIB:.0f} MiB",
        f"{with_pack.peak_bytes / _MIB:.0f} MiB",
    )
