"""The benchmark's table and medians."""

import sys
from pathlib import Path

import pytest

from holdfast.simulator.errors import RehearsalError
from tests.soak.bench.measurement import Measurement, measure, median_of, render, rows

_MIB = 1024 * 1024


def _cost(seconds: float, mib: int = 100) -> Measurement:
    return Measurement(seconds=seconds, peak_bytes=mib * _MIB)


def test_a_command_stands_beside_the_empty_programs_with_its_ratios() -> None:
    _, row = rows({"up": _cost(2.0, 100)}, {"up": _cost(9.0, 150)}, "local")
    assert row == ("up", "2.0 s", "9.0 s", "4.5", "100 MiB", "150 MiB", "1.5"), "not the figures measured"


def test_columns_are_aligned() -> None:
    lines = render([("command", "empty"), ("up", "12.0 s")])
    assert lines == ["command   empty", "up       12.0 s"], "words to the left, figures to the right"


def test_each_figure_has_its_own_median() -> None:
    middle = median_of([_cost(1.0, 300), _cost(2.0, 100), _cost(9.0, 200)])
    assert middle == _cost(2.0, 200), "one outlier would decide both"


def test_a_command_is_measured_with_what_it_starts(tmp_path: Path) -> None:
    held = 64 * _MIB
    child = f"import time; x = bytearray({held}); time.sleep(0.5)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    cost = measure([sys.executable, "-c", parent], cwd=tmp_path)
    assert cost.peak_bytes > held, "the memory of a child is part of it"


def test_a_command_that_fails_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match="no such luck"):
        measure([sys.executable, "-c", "import sys; sys.exit('no such luck')"], cwd=tmp_path)
