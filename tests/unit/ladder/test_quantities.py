import contextlib
import re
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.quantities import (
    CPU_PATTERN,
    LONGEST_DURATION,
    MEMORY_PATTERN,
    MOST_CPU_MILLIS,
    MOST_MEMORY_MIB,
    AmountError,
    DurationError,
    effective_requests,
    format_cpu,
    format_duration,
    format_memory,
    format_quantity,
    parse_cpu,
    parse_duration,
    parse_memory,
    parse_quantity,
)
from pulumi_holdfast.program.resources import cpu_millis, memory_mib

millis = st.integers(1, MOST_CPU_MILLIS)
mebibytes = st.integers(1, MOST_MEMORY_MIB)


@given(millis, mebibytes)
def test_formatted_amounts_are_parsed_back_here_and_in_the_policies(millicpus: int, mib: int) -> None:
    cpu, memory = format_cpu(millicpus), format_memory(mib)
    assert (parse_cpu(cpu), parse_memory(memory)) == (millicpus, mib)
    assert (cpu_millis(cpu), memory_mib(memory)) == (millicpus, mib)
    assert re.fullmatch(CPU_PATTERN, cpu)
    assert re.fullmatch(MEMORY_PATTERN, memory)


@pytest.mark.parametrize(
    ("parse", "text", "amount"),
    [
        *((parse_cpu, "48", 48_000), (parse_cpu, "1.5", 1500), (parse_cpu, "0.001", 1), (parse_cpu, "500m", 500)),
        *((parse_cpu, "10000", 10_000_000), (parse_memory, "512Gi", 512 * 1024), (parse_memory, "1Mi", 1)),
        *((parse_memory, "1.5Ti", 1536 * 1024), (parse_memory, "1G", 954), (parse_memory, "500M", 477)),
        (parse_memory, "100Ti", 100 * 1024**2),
    ],
)  # fmt: skip
def test_cpus_are_thousandths_and_memory_is_rounded_up_to_mebibytes(
    parse: Callable[[str], int], text: str, amount: int
) -> None:
    assert parse(text) == amount


CPU_FORM, MEMORY_FORM = "thousandths with an m", "Mi, Gi or Ti"


@pytest.mark.parametrize(
    ("parse", "text", "fix"),
    [
        *((parse_cpu, text, CPU_FORM) for text in ("", " ", "m", "-1", "1e3", "48 ", "48\n", "4,5", "48Gi", "٤٨", "1.2345", "NaN")),
        *((parse_memory, text, MEMORY_FORM) for text in ("", "Gi", "-1Gi", "512GB", "512gi", "512 Gi", "512Gi\n", "1Ki", "1e3Gi", "500m")),
        *((parse_memory, text, f"Write {text}Gi or {text}Mi: without a unit it is bytes.") for text in ("512", "1.5")),
        (parse_cpu, "0", "at least 1m"),
        (parse_cpu, "0m", "at least 1m"),
        (parse_cpu, "10000.001", "at most 10000"),
        (parse_memory, "0Gi", "at least 1Mi"),
        (parse_memory, "101Ti", "at most 100Ti"),
    ],
)  # fmt: skip
def test_invalid_amounts_raise_with_the_form_or_the_limit(
    parse: Callable[[str], int], text: str, fix: str
) -> None:
    with pytest.raises(AmountError) as raised:
        parse(text)
    assert fix in raised.value.fix


@given(st.text(max_size=12))
def test_any_text_is_an_amount_or_raises_amount_error(text: str) -> None:
    for parse in (parse_cpu, parse_memory):
        with contextlib.suppress(AmountError):
            assert parse(text) > 0


durations = st.integers(min_value=1, max_value=int(LONGEST_DURATION.total_seconds())).map(
    lambda seconds: timedelta(seconds=seconds)
)


@given(durations)
def test_formatted_duration_is_parsed_back(duration: timedelta) -> None:
    text = format_duration(duration)
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45s", 45), ("15m", 900), ("90m", 5400), ("1h30m", 5400), ("1h30m15s", 5415), ("720h", 2592000)],
)
def test_hours_minutes_and_seconds_add_up(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        *((text, f"Write {text}m, {text}s or {text}h.") for text in ("15", "0", "1500")),
        *((text, "1h30m") for text in ("", " ", "m", "15 m", "-15m", "1.5h", "15M", "30m1h", "1h1h", "1d", "15m ", "15m\n", "١٥m", "15min")),
        *((text, "Write at least 1s.") for text in ("0s", "0h0m0s")),
        *((text, "Write at most 720h.") for text in ("721h", "999999h", "43201m")),
    ],
)  # fmt: skip
def test_invalid_duration_raises_with_the_form_or_the_limit(text: str, fix: str) -> None:
    with pytest.raises(DurationError) as raised:
        parse_duration(text)
    assert fix in raised.value.fix


@given(st.text(max_size=12))
def test_any_text_is_a_duration_or_raises_duration_error(text: str) -> None:
    duration = LONGEST_DURATION
    with contextlib.suppress(DurationError):
        duration = parse_duration(text)
    assert timedelta(0) < duration <= LONGEST_DURATION, f"{text!r} was parsed as {duration}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", Fraction(1)),
        ("250m", Fraction(1, 4)),
        ("1k", Fraction(1000)),
        ("1Ki", Fraction(1024)),
        ("1e3", Fraction(1000)),
        (".5Gi", Fraction(2**29)),
        ("lots", Fraction(0)),
        ("1gi", Fraction(0)),
    ],
)
def test_quantity_is_parsed_exactly_and_anything_else_is_zero(text: str, value: Fraction) -> None:
    assert parse_quantity(text) == value


@given(st.fractions(min_value=0, max_value=10**9))
def test_formatted_quantity_is_never_below_the_amount(amount: Fraction) -> None:
    assert 0 <= parse_quantity(format_quantity(amount)) - amount < Fraction(1, 1000)


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "e.x/0"]), st.integers(0, 9), max_size=3)
INIT_CONTAINERS = st.lists(st.tuples(AMOUNTS, st.booleans()), max_size=6)


def container(amounts: dict[str, int], *, is_sidecar: bool = False) -> Json:
    requests: Json = {name: str(amount) for name, amount in amounts.items()}
    return {"resources": {"requests": requests}, **({"restartPolicy": "Always"} if is_sidecar else {})}


@given(AMOUNTS, INIT_CONTAINERS)
def test_an_init_container_runs_with_the_sidecars_before_it(
    main: dict[str, int], init: list[tuple[dict[str, int], bool]]
) -> None:
    moments = [
        [amounts, *(each for each, is_sidecar in init[:number] if is_sidecar)]
        for number, (amounts, _) in enumerate(init)
    ]
    moments.append([main, *(amounts for amounts, is_sidecar in init if is_sidecar)])
    names = {name for moment in moments for amounts in moment for name in amounts}
    peaks = {name: max(sum(each.get(name, 0) for each in moment) for moment in moments) for name in names}
    found = effective_requests(
        {
            "containers": [container(main)],
            "initContainers": [container(amounts, is_sidecar=is_sidecar) for amounts, is_sidecar in init],
        }
    )
    assert found == {name: Fraction(peak) for name, peak in peaks.items() if peak}


def test_thousands_of_sidecars_with_resources_of_their_own_are_summed_in_one_walk() -> None:
    sidecars = [container({f"e.x/{number}": 1}, is_sidecar=True) for number in range(14_000)]
    assert len(effective_requests({"initContainers": [*sidecars]})) == 14_000
