"""Curves for a terminal, and as a picture.

The libraries behind them are imported where something is drawn: they take seconds and 60 MiB, and the other commands
need neither.
"""

# Both libraries leave the rest of their keyword arguments untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from holdfast.analysis.economics.curves import Curve

_COLUMNS = 72
_LINES = 14


def as_text(curve: Curve) -> str:
    """Draw the curve with characters, without colour: it is read in logs too."""
    from uniplot import plot_to_string

    drawn = plot_to_string(
        xs=[curve.x for _ in curve.lines],
        ys=[line for _, line in curve.lines],
        lines=True,
        color=False,
        title=f"{curve.title} ({curve.y_label})",
        legend_labels=[name for name, _ in curve.lines],
        width=_COLUMNS,
        height=_LINES,
    )
    return "\n".join(line.rstrip() for line in drawn.splitlines())


def as_picture(curves: Sequence[Curve], path: Path) -> None:
    """Draw the curves side by side into a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7 * len(curves), 5), layout="constrained")
    for place, curve in enumerate(curves, start=1):
        axes = figure.add_subplot(1, len(curves), place)
        for name, line in curve.lines:
            axes.plot(curve.x, line, label=name)
        axes.set(title=curve.title, xlabel=curve.x_label, ylabel=curve.y_label)
        axes.grid(visible=True)
        axes.legend()
    figure.savefig(path, format="png")
