from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.reachability.shape import Resources, shape_problems, total, widest
from tests.support.builders.reachability import shape

AT = "holdfast:platform.namespaces[0].shapes"


def test_valid_shapes_have_no_problems() -> None:
    on_cpus = replace(shape(), requests=Resources(cpu_millis=1000, memory_mib=1024))
    assert list(shape_problems([shape(), shape(accelerator="a100"), on_cpus], AT)) == []


def test_accelerator_without_gpus_is_reported() -> None:
    no_gpus = shape(accelerator="a100", requests=Resources(cpu_millis=1000, memory_mib=1024))
    (problem,) = shape_problems([shape(), no_gpus], AT)
    assert problem.field == f"{AT}[1].accelerator"
    assert problem.value == '"a100" without GPUs'
    assert "Add gpus" in problem.fix


@pytest.mark.parametrize(
    ("requests", "text"),
    [
        (Resources(cpu_millis=90_000, memory_mib=900 * 1024, gpus=8), "8 GPUs, 90 CPU, 900 GiB"),
        (Resources(cpu_millis=1500, memory_mib=1500, gpus=1), "1 GPU, 1.5 CPU, 1.4 GiB"),
        (Resources(cpu_millis=500, memory_mib=512), "0.5 CPU, 512 MiB"),
    ],
)
def test_resources_are_formatted_for_messages(requests: Resources, text: str) -> None:
    assert str(requests) == text


amounts = st.integers(0, 200)


@given(
    cpu=amounts, memory=amounts, gpus=st.integers(0, 8), wanted=st.tuples(amounts, amounts, st.integers(0, 8))
)
def test_resources_fit_as_often_as_their_multiples_do(
    cpu: int, memory: int, gpus: int, wanted: tuple[int, int, int]
):
    room = Resources(cpu_millis=cpu, memory_mib=memory, gpus=gpus)
    pod = Resources(cpu_millis=wanted[0], memory_mib=wanted[1], gpus=wanted[2])
    count = pod.times_in(room)
    filled = Resources(cpu_millis=wanted[0] * count, memory_mib=wanted[1] * count, gpus=wanted[2] * count)
    more = Resources(
        cpu_millis=wanted[0] * (count + 1), memory_mib=wanted[1] * (count + 1), gpus=wanted[2] * (count + 1)
    )
    assert filled.fits_in(room)
    assert any(wanted) is False or not more.fits_in(room), "one more does not, unless nothing is requested"


def test_resources_fit_only_where_there_is_as_much_of_each():
    one = Resources(cpu_millis=1, memory_mib=1, gpus=1, efa=1, devices={"nic": 1})
    assert one.fits_in(one)
    for more in (
        {"cpu_millis": 2},
        {"memory_mib": 2},
        {"gpus": 2},
        {"efa": 2},
        {"devices": {"nic": 2}},
        {"devices": {"rdma": 1}},
    ):
        assert not replace(one, **more).fits_in(one), f"{more} is one too many"
    assert one.times(3).times_in(one.times(7)) == 2
    assert total([one, one]) == one.times(2) == widest([one, one.times(2)])
