"""A picture of a training: its steps over time, a line for each attempt in the color of its pool."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import groupby
from typing import Final

_SECONDS_BETWEEN: Final = 0.5
_WIDTH: Final = 900
_HEIGHT: Final = 360
_LEFT: Final = 56
_RIGHT: Final = 16
_TOP: Final = 56
_BOTTOM: Final = 28
_COLORS: Final = ("#1a7f37", "#9a6700", "#0969da", "#8250df", "#cf222e")
_STYLE: Final = "text { font: 12px system-ui, sans-serif; fill: #57606a } .axis { stroke: #8c959f } .line { fill: none; stroke-width: 2 }"


@dataclass(frozen=True, kw_only=True)
class StepPoint:
    """The last step that an attempt, by the uid of its first worker, had taken at a time in a pool."""

    at: datetime
    attempt: str
    pool: str
    step: int


@contextmanager
def sampled(last: Callable[[], StepPoint | None]) -> Generator[list[StepPoint]]:
    """Collect `last` for the length of the block; it is called again and again in a thread of its own."""
    points: list[StepPoint] = []
    over = threading.Event()

    def collect() -> None:
        while not over.wait(_SECONDS_BETWEEN):
            point = last()
            if point is not None:
                points.append(point)

    thread = threading.Thread(target=collect, name="training steps", daemon=True)
    thread.start()
    try:
        yield points
    finally:
        over.set()
        thread.join()


def render_steps(title: str, pools: Sequence[str], points: Sequence[StepPoint]) -> str:
    """Return the picture as SVG."""
    start = min((each.at for each in points), default=datetime.now(UTC))
    seconds = max(max(((each.at - start).total_seconds() for each in points), default=0), 1)
    most = max(max((each.step for each in points), default=0), 1)

    def place(point: StepPoint) -> str:
        x = _LEFT + (point.at - start).total_seconds() / seconds * (_WIDTH - _LEFT - _RIGHT)
        y = _HEIGHT - _BOTTOM - point.step / most * (_HEIGHT - _TOP - _BOTTOM)
        return f"{x:.1f},{y:.1f}"

    color = {pool: _COLORS[number % len(_COLORS)] for number, pool in enumerate(pools)}
    lines = [
        f'<polyline class="line" stroke="{color.get(pool, "#57606a")}" points="{" ".join(map(place, group))}"/>'
        for (_, pool), group in groupby(points, key=lambda each: (each.attempt, each.pool))
    ]
    names = [
        f'<text x="{_LEFT + 150 * number}" y="40" style="fill: {color[pool]}">— {escape(pool)}</text>'
        for number, pool in enumerate(pools)
    ]
    foot, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<text x="{_LEFT}" y="20">{escape(title)}</text>',
            *names,
            f'<path class="axis" d="M{_LEFT} {_TOP}V{foot}H{right}" fill="none"/>',
            f'<text x="4" y="{_TOP + 4}">{most}</text>',
            f'<text x="4" y="{foot}">step 0</text>',
            f'<text x="{right}" y="{_HEIGHT - 8}" text-anchor="end">{seconds:.0f} s</text>',
            *lines,
            "</svg>",
            "",
        ]
    )
