"""The benchmark of previews: its measurements, its table and its aims."""

import sys
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.soak.bench.measurement import Measurement, measure, median_of, render
from tests.soak.command_line import against_aims

_MIB = 1024 * 1024


def _cost(seconds: float, mib: int = 100) -> Measurement:
    return Measurement(seconds=seconds, peak_bytes=mib * _MIB)


def test_tables_are_aligned_and_compare_medians() -> None:
    lines = render([("command", "empty"), ("up", "12.0 s")])
    assert lines == ["command   empty", "up       12.0 s"]
    middle = median_of([_cost(1.0, 300), _cost(2.0, 100), _cost(9.0, 200)])
    assert middle == _cost(2.0, 200)


def test_the_processes_that_a_command_starts_are_measured(tmp_path: Path) -> None:
    held = 64 * _MIB
    child = f"import time; x = bytearray({held}); time.sleep(0.5); sum(range(3_000_000))"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    cost = measure([sys.executable, "-c", parent], cwd=tmp_path)
    assert cost.peak_bytes > held
    idle = measure([sys.executable, "-c", "pass"], cwd=tmp_path)
    assert cost.cpu_seconds > idle.cpu_seconds > 0


def test_a_failed_command_raises(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match="no such luck"):
        measure([sys.executable, "-c", "import sys; sys.exit('no such luck')"], cwd=tmp_path)


def test_previews_are_compared_with_their_aims() -> None:
    def cost(cpu: float, seconds: float) -> Measurement:
        return Measurement(seconds=seconds, peak_bytes=0, cpu_seconds=cpu)

    stack, pack = against_aims(cost(4.0, 2.0), cost(5.0, 2.6), cost(5.5, 2.8))
    assert stack == (
        "The local stack, to as many ConfigMaps: 1.30 of the time, 1.25 of the CPU. Aim: at most 1.25 (not met)."
    )
    assert pack == (
        "The local stack with the pack, to without: 1.08 of the time, 1.10 of the CPU. Aim: at most 1.10 (met)."
    )
