"""Traces: what is read of a file, what a gang meets in one, and what a seed makes."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.analysis.replay.trace import (
    SyntheticMarket,
    Trace,
    TraceError,
    rates,
    read_trace,
    synthetic_trace,
    write_trace,
)
from pulumi_holdfast.ladder.json import JsonValue
from tests.support.markets import HOUR, MINUTE, trace
from tests.support.strategies.any_json import any_json

TEXTS = {
    "no file's words": (b"\xff\xfe\x00", "no JSON"),
    "nothing": (b"", "no JSON"),
    "half a file": (b'{"metadata": {"gap_seconds": 300}, "data": [1, 1', "no JSON"),
    "a million brackets": (b"[" * 1_000_000, "no JSON"),
    "a number of ten thousand digits": (b'{"data": [' + b"9" * 10_000 + b"]}", "no JSON"),
    "a list": (b"[1, 2]", "got a list"),
    "a number": (b"3", "got 3"),
    "no metadata": (b'{"data": [1]}', "metadata.gap_seconds: missing"),
    "metadata of another kind": (b'{"metadata": 5, "data": [1]}', "metadata.gap_seconds: missing"),
    "no gap": (b'{"metadata": {}, "data": [1]}', "metadata.gap_seconds: missing"),
    "a gap in words": (b'{"metadata": {"gap_seconds": "5m"}, "data": [1]}', 'got "5m"'),
    "a gap of nothing": (b'{"metadata": {"gap_seconds": 0}, "data": [1]}', "got 0"),
    "a gap that goes back": (b'{"metadata": {"gap_seconds": -300}, "data": [1]}', "got -300"),
    "a gap that is no number": (b'{"metadata": {"gap_seconds": NaN}, "data": [1]}', "got NaN"),
    "a gap without end": (b'{"metadata": {"gap_seconds": Infinity}, "data": [1]}', "got Infinity"),
    "a gap that is true": (b'{"metadata": {"gap_seconds": true}, "data": [1]}', "got true"),
    "no data": (b'{"metadata": {"gap_seconds": 300}}', "data: got nothing"),
    "data of another kind": (b'{"metadata": {"gap_seconds": 300}, "data": {"a": 1}}', "data: got an object"),
    "no tick": (b'{"metadata": {"gap_seconds": 300}, "data": []}', "data: got an empty list"),
    "a tick in words": (b'{"metadata": {"gap_seconds": 300}, "data": [1, "1"]}', 'data[1]: got "1"'),
    "a tick of half an instance": (b'{"metadata": {"gap_seconds": 300}, "data": [0.5]}', "data[0]: got 0.5"),
    "a tick of less than none": (b'{"metadata": {"gap_seconds": 300}, "data": [-1]}', "data[0]: got -1"),
    "a tick that is not known": (b'{"metadata": {"gap_seconds": 300}, "data": [null]}', "data[0]: got null"),
    "a tick that is true": (b'{"metadata": {"gap_seconds": 300}, "data": [true]}', "data[0]: got true"),
    "a tick that is a list": (b'{"metadata": {"gap_seconds": 300}, "data": [[1]]}', "data[0]: got a list"),
    "a tick without end": (b'{"metadata": {"gap_seconds": 300}, "data": [1e999]}', "data[0]: got Infinity"),
    "a price for no tick": (
        b'{"metadata": {"gap_seconds": 300}, "data": [1], "prices": [1, 2]}',
        "prices: got 2; allowed: a list of as many prices as data has ticks, 1",
    ),
    "prices of another kind": (
        b'{"metadata": {"gap_seconds": 300}, "data": [1], "prices": 3}',
        "prices: got 3",
    ),
    "a price of nothing": (
        b'{"metadata": {"gap_seconds": 300}, "data": [1], "prices": [0]}',
        "prices[0]: got 0",
    ),
    "more than there are": (b'{"metadata": {"gap_seconds": 300}, "data": [9000000]}', "data[0]: got 9000000"),
}


@pytest.mark.parametrize(("text", "message"), TEXTS.values(), ids=list(TEXTS))
def test_what_is_no_trace_is_a_sentence_with_its_place_and_the_form_it_should_have(
    text: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(TraceError) as refused:
        read_trace(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert message in str(refused.value)
    assert "allowed: " in str(refused.value)


@given(document=any_json("metadata", "gap_seconds", "data"))
def test_anything_in_json_is_a_trace_or_a_sentence(
    document: JsonValue, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.json"
    path.write_text(json.dumps(document))
    message = f"{path}: "
    try:
        assert read_trace(path).data
    except TraceError as error:
        message = str(error)
    assert message.startswith(f"{path}: ")


def test_further_keys_and_whole_numbers_written_with_a_point_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        '{"metadata": {"gap_seconds": 32.5, "zone": "a"}, "data": [1.0, 0], "prices": [0.9, 1], "by": 7}'
    )
    found = read_trace(path)
    assert found == Trace(gap=timedelta(seconds=32.5), data=(1, 0), prices=(0.9, 1.0))
    assert found.relative_to(3.0).prices == pytest.approx((0.3, 1 / 3))
    write_trace(found, path)
    assert read_trace(path) == found


@given(data=st.lists(st.integers(0, 20), min_size=1, max_size=50), gap=st.integers(1, 86_400))
def test_a_trace_is_read_as_it_was_written(
    data: list[int], gap: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("round") / "a.json"
    written = Trace(gap=timedelta(seconds=gap), data=tuple(data))
    write_trace(written, path)
    assert read_trace(path) == written


def test_only_what_a_gang_can_use_changes_what_it_sees() -> None:
    seen = trace((1, 5), (1, 4), (1, 3), (1, 0), (1, 9)).steps(4, 10 * HOUR)
    assert seen == [(0 * HOUR, 4), (2 * HOUR, 3), (3 * HOUR, 0), (4 * HOUR, 4)]
    assert trace((2, 1), (2, 0)).steps(1, 2 * HOUR) == [(0 * HOUR, 1)]


def test_rates_are_those_of_the_whole_gang() -> None:
    found = rates(trace((6, 4), (2, 3), (2, 4), (4, 0)), 4)
    assert found.share == pytest.approx(8 / 14)
    assert found.evictions_per_hour == pytest.approx(2 / 8)
    assert found.mean_wait_hours == pytest.approx(3)
    assert found.longest_wait_hours == pytest.approx(4)
    never, always = rates(trace((5, 1)), 2), rates(trace((5, 2)), 2)
    assert (never.share, never.evictions_per_hour, never.longest_wait_hours) == (0, 0, 5)
    assert (always.share, always.evictions_per_hour, always.mean_wait_hours) == (1, 0, 0)


WEATHER = SyntheticMarket(instances=4, length=30 * 24 * HOUR)


def test_a_made_market_is_as_it_was_asked_for() -> None:
    made = synthetic_trace(replace(WEATHER, length=2000 * 24 * HOUR), 3)
    found = rates(made, 4)
    assert found.share == pytest.approx(0.75, abs=0.03)
    assert found.mean_wait_hours == pytest.approx(2, rel=0.1)
    assert found.evictions_per_hour == pytest.approx(1 / 6, rel=0.1)
    assert set(made.data) == {0, 1, 2, 3, 4}
    assert synthetic_trace(WEATHER, 1) == synthetic_trace(WEATHER, 1)
    assert synthetic_trace(WEATHER, 1) != synthetic_trace(WEATHER, 2)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"instances": 0}, "instances"),
        ({"there": 0 * HOUR}, "there"),
        ({"gone": -HOUR}, "gone"),
        ({"gap": 0 * HOUR}, "gap"),
        ({"length": MINUTE}, "length"),
        ({"length": 10**6 * HOUR, "gap": timedelta(seconds=1)}, "length"),
    ],
)
def test_weather_that_makes_no_trace_is_refused(wrong: dict[str, timedelta], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        replace(WEATHER, **wrong)
