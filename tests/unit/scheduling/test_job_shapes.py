"""Shapes that contradict themselves."""

from __future__ import annotations

from dataclasses import replace

from holdfast.scheduling.reachability.shape import Resources, shape_problems
from tests.support.reachability import shape

AT = "holdfast:platform.namespaces[0].shapes"


def test_shapes_that_mean_something_are_taken() -> None:
    on_cpus = replace(shape(), requests=Resources(cpu_millis=1000, memory_mib=1024))
    assert list(shape_problems([shape(), shape(accelerator="a100"), on_cpus], AT)) == [], "nothing is wrong"


def test_a_kind_of_gpu_for_no_gpu_is_refused() -> None:
    no_gpus = shape(accelerator="a100", requests=Resources(cpu_millis=1000, memory_mib=1024))
    (problem,) = shape_problems([shape(), no_gpus], AT)
    assert problem.field == f"{AT}[1].accelerator", "the field is named"
    assert problem.value == '"a100" without GPUs', "and what stands there"
    assert "Add gpus" in problem.fix, "and the fix"
