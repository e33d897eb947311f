"""A picture of a job that walks its ladder: one lane a pool, one bar a pod, one arrow a move.

`holdfast rehearse demo STACK --picture FILE` writes it as SVG. The file contains the data that it was drawn from, so that a test can
draw it again and compare.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape, unescape
from typing import Final

from pydantic import TypeAdapter

from pulumi_holdfast.rehearsal.timeline.traces import Move, PodTrace

_DATA: Final = re.compile(r"<metadata>(.*)</metadata>", re.DOTALL)
_LEFT: Final = 132
_RIGHT: Final = 24
_TOP: Final = 54
_WIDTH: Final = 900
_ROW: Final = 18
_GAP: Final = 34
_LEGEND: Final = "a bar is a pod: dashed while it waits for a node, red where its node was taken; an arrow is a move of the job"
_STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.small { font-size: 11px; fill: #57606a }
.lane { fill: #f6f8fa }
.runs { fill: #1a7f37 } .waits { fill: none; stroke: #9a6700; stroke-dasharray: 3 3 } .lost { fill: #cf222e }
.move { stroke: #0969da; stroke-width: 2; fill: none } .head { fill: #0969da }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 } .lane { fill: #161b22 }
  .runs { fill: #3fb950 } .waits { stroke: #d29922 } .lost { fill: #ff7b72 }
  .move { stroke: #58a6ff } .head { fill: #58a6ff }
}"""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A pod, in seconds since the first pod of the job: created, placed on a node (None: never), ended, and lost or not."""

    lane: int
    row: int
    begins: float
    placed: float | None
    ends: float
    lost: bool


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """A move between two lanes: when the job was suspended, when it was resumed, and why."""

    source: int
    target: int
    begins: float
    ends: float
    reason: str


@dataclass(frozen=True, kw_only=True)
class Picture:
    """What is drawn. `pools` are the lanes, first tier first."""

    title: str
    pools: tuple[str, ...]
    seconds: float
    bars: tuple[Bar, ...]
    arrows: tuple[Arrow, ...]


_PICTURE: Final = TypeAdapter(Picture)


def picture_of(
    title: str,
    pools: Sequence[str],
    gang: Iterable[PodTrace],
    moves: Sequence[Move],
    reasons: Sequence[str],
    until: datetime,
) -> Picture:
    """Return the picture of a job's pods and moves up to `until`; `reasons` has one text for each move."""
    pods = sorted((pod for pod in gang if pod.pool in pools), key=lambda pod: (pod.born_at, pod.name))
    start = min((pod.born_at for pod in pods), default=until)

    def since(at: datetime) -> float:
        return round((at - start).total_seconds(), 1)

    arrows = [
        Arrow(
            source=pools.index(move.source),
            target=pools.index(move.target),
            begins=since(move.suspended_at),
            ends=since(move.resumed_at or until),
            reason=reason,
        )
        for move, reason in zip(moves, reasons, strict=True)
    ]
    bars: list[Bar] = []
    for pod in pods:
        lane, begins, ends = pools.index(pod.pool), since(pod.born_at), since(pod.ended_at or until)
        taken = {bar.row for bar in bars if bar.lane == lane and bar.ends > begins}
        row = next(row for row in range(len(pods)) if row not in taken)
        placed = None if pod.bound_at is None else since(pod.bound_at)
        bars.append(Bar(lane=lane, row=row, begins=begins, placed=placed, ends=ends, lost=bool(pod.lost)))
    return Picture(
        title=title, pools=tuple(pools), seconds=since(until), bars=tuple(bars), arrows=tuple(arrows)
    )


def render_svg(picture: Picture) -> str:
    """Return the picture as SVG, with its data."""
    scale = _Scale.of(picture)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {scale.height}" role="img">',
        f"<title>{escape(picture.title)}</title>",
        f"<metadata>{escape(_PICTURE.dump_json(picture).decode(), quote=False)}</metadata>",
        f"<style>{_STYLE}</style>",
        f'<text x="{_LEFT}" y="20">{escape(picture.title)}</text>',
        f'<text class="small" x="{_LEFT}" y="36">{_LEGEND}</text>',
        *_lanes(picture, scale),
        *(_bar(bar, scale) for bar in picture.bars),
        *(_arrow(arrow, scale) for arrow in picture.arrows),
        *_axis(picture, scale),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def read_svg(svg: str) -> Picture:
    """Return the data of a rendered picture. Raises ValueError if the text has none."""
    found = _DATA.search(svg)
    if found is None:
        raise ValueError(
            "the SVG has no <metadata>: write it with `holdfast rehearse demo local --picture FILE`"
        )
    return _PICTURE.validate_json(unescape(found[1]))


@dataclass(frozen=True, kw_only=True)
class _Scale:
    """Where a time and a row are in the picture, in its units."""

    seconds: float
    tops: tuple[int, ...]
    rows: tuple[int, ...]

    @classmethod
    def of(cls, picture: Picture) -> "_Scale":
        rows = tuple(
            max((bar.row + 1 for bar in picture.bars if bar.lane == lane), default=1)
            for lane in range(len(picture.pools))
        )
        tops = tuple(_TOP + sum(rows[:lane]) * _ROW + lane * _GAP for lane in range(len(rows)))
        return cls(seconds=max(picture.seconds, 1), tops=tops, rows=rows)

    @property
    def height(self) -> int:
        return self.tops[-1] + self.rows[-1] * _ROW + 36

    def x(self, at: float) -> float:
        return round(_LEFT + at / self.seconds * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, lane: int, row: int) -> int:
        return self.tops[lane] + row * _ROW

    def middle(self, lane: int) -> float:
        return self.tops[lane] + self.rows[lane] * _ROW / 2


def _lanes(picture: Picture, scale: _Scale) -> Iterable[str]:
    for lane, pool in enumerate(picture.pools):
        top, height = scale.tops[lane] - 4, scale.rows[lane] * _ROW + 4
        yield f'<rect class="lane" x="{_LEFT}" y="{top}" width="{_WIDTH - _LEFT - _RIGHT}" height="{height}" rx="4"/>'
        yield f'<text x="8" y="{scale.middle(lane) + 2:.0f}">{escape(pool)}</text>'


def _bar(bar: Bar, scale: _Scale) -> str:
    y = scale.y(bar.lane, bar.row)
    placed = bar.ends if bar.placed is None else bar.placed
    parts: list[str] = []
    if placed > bar.begins:
        parts.append(_rect("waits", scale.x(bar.begins), scale.x(placed), y))
    if bar.ends > placed:
        parts.append(_rect("runs", scale.x(placed), scale.x(bar.ends), y))
    if bar.lost:
        parts.append(_rect("lost", scale.x(bar.ends) - 4, scale.x(bar.ends), y))
    return "".join(parts)


def _rect(kind: str, begins: float, ends: float, y: int) -> str:
    width = max(ends - begins, 1)
    return f'<rect class="{kind}" x="{begins:.1f}" y="{y}" width="{width:.1f}" height="{_ROW - 6}" rx="2"/>'


def _arrow(arrow: Arrow, scale: _Scale) -> str:
    down = arrow.target > arrow.source
    begin = scale.tops[arrow.source] + (scale.rows[arrow.source] * _ROW if down else -4)
    end = scale.tops[arrow.target] + (-8 if down else scale.rows[arrow.target] * _ROW + 4)
    x, tip = scale.x(arrow.begins), scale.x(arrow.ends)
    wing = -6 if down else 6
    label = f"{arrow.reason}, {arrow.ends - arrow.begins:.1f} s"
    # Text to the right of a move near the right edge would leave the picture.
    anchor, at = ("end", tip - 8) if tip > _WIDTH * 0.7 else ("start", tip + 8)
    # The gap beside the target: a longer move crosses other lanes.
    y = end + (-8 if down else 16)
    return (
        f'<path class="move" d="M{x} {begin} L{tip} {end}"/>'
        f'<path class="head" d="M{tip} {end - wing} l-5 {wing} h10 z"/>'
        f'<text class="small" x="{at:.1f}" y="{y}" text-anchor="{anchor}">{escape(label)}</text>'
    )


def _axis(picture: Picture, scale: _Scale) -> Iterable[str]:
    y = scale.height - 12
    step = next(step for step in (5, 10, 20, 30, 60, 120, 300, 600, 3600) if scale.seconds / step <= 9)
    for at in range(0, int(picture.seconds) + 1, step):
        yield f'<text class="small" x="{scale.x(at)}" y="{y}" text-anchor="middle">{at} s</text>'
