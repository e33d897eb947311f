"""Amounts of CPU and memory as users write them."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.policies.resources import cpu_millis, memory_mib
from holdfast.scheduling.quantities import (
    CPU_PATTERN,
    MEMORY_PATTERN,
    MOST_CPU_MILLIS,
    MOST_MEMORY_MIB,
    AmountError,
    format_cpu,
    format_memory,
    parse_cpu,
    parse_memory,
)

if TYPE_CHECKING:
    from collections.abc import Callable

millis = st.integers(1, MOST_CPU_MILLIS)
mebibytes = st.integers(1, MOST_MEMORY_MIB)


@given(millis)
def test_written_cpus_read_as_themselves_here_and_in_the_policies(amount: int) -> None:
    text = format_cpu(amount)
    assert parse_cpu(text) == amount, f"{text} must read as what it was written from"
    assert cpu_millis(text) == amount, "the policies judge the shape that was meant"
    assert re.fullmatch(CPU_PATTERN, text), "the API server takes it"


@given(mebibytes)
def test_written_memory_reads_as_itself_here_and_in_the_policies(amount: int) -> None:
    text = format_memory(amount)
    assert parse_memory(text) == amount, f"{text} must read as what it was written from"
    assert memory_mib(text) == amount, "the policies judge the shape that was meant"
    assert re.fullmatch(MEMORY_PATTERN, text), "the API server takes it"


@pytest.mark.parametrize(
    ("text", "amount"), [("48", 48_000), ("1.5", 1500), ("0.001", 1), ("500m", 500), ("10000", 10_000_000)]
)
def test_cpus_are_whole_parts_or_thousandths(text: str, amount: int) -> None:
    assert parse_cpu(text) == amount, f"{text} is {amount} thousandths"


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("512Gi", 512 * 1024),
        ("1.5Ti", 1536 * 1024),
        ("1Mi", 1),
        ("1G", 954),
        ("500M", 477),
        ("100Ti", 100 * 1024**2),
    ],
)
def test_memory_has_its_unit_and_is_rounded_up(text: str, amount: int) -> None:
    assert parse_memory(text) == amount, f"{text} is {amount} MiB or a little less"


@pytest.mark.parametrize(
    "text", ["", " ", "m", "-1", "1e3", "48 ", "48\n", "4,5", "48Gi", "٤٨", "1.2345", "NaN"]
)
def test_what_only_resembles_cpus_is_refused(text: str) -> None:
    with pytest.raises(AmountError) as refused:
        parse_cpu(text)
    assert "thousandths with an m" in refused.value.fix, "the refusal shows the form"


@pytest.mark.parametrize(
    "text", ["", "Gi", "-1Gi", "512GB", "512gi", "512 Gi", "512Gi\n", "1Ki", "1e3Gi", "500m"]
)
def test_what_only_resembles_memory_is_refused(text: str) -> None:
    with pytest.raises(AmountError) as refused:
        parse_memory(text)
    assert "Mi, Gi or Ti" in refused.value.fix, "the refusal shows the form"


@pytest.mark.parametrize("text", ["512", "1.5"])
def test_memory_without_a_unit_is_refused_with_those_it_could_mean(text: str) -> None:
    with pytest.raises(AmountError) as refused:
        parse_memory(text)
    assert refused.value.fix == f"Write {text}Gi or {text}Mi: without a unit it is bytes.", (
        "nobody means 512 bytes"
    )


@pytest.mark.parametrize(
    ("parse", "text", "fix"),
    [
        (parse_cpu, "0", "at least 1m"),
        (parse_cpu, "0m", "at least 1m"),
        (parse_cpu, "10000.001", "at most 10000"),
        (parse_memory, "0Gi", "at least 1Mi"),
        (parse_memory, "101Ti", "at most 100Ti"),
    ],
)
def test_nothing_and_more_than_any_machine_are_refused(
    parse: Callable[[str], int], text: str, fix: str
) -> None:
    with pytest.raises(AmountError) as refused:
        parse(text)
    assert fix in refused.value.fix, "the refusal says which end was passed"


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_and_nothing_else_happens(text: str) -> None:
    for parse in (parse_cpu, parse_memory):
        with contextlib.suppress(AmountError):
            assert parse(text) > 0, "what is read is an amount"
