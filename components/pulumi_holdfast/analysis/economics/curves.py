"""The curves of the cost model, as numbers, text and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pulumi_holdfast.analysis.economics.cost_model import MixedJob, tolerated_extension

_POINTS = 51


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Two lines over the share of a job that runs on spot: both ends of the range."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    spread: Sequence[float]
    on_demand: Sequence[float]

    @property
    def lines(self) -> tuple[tuple[str, Sequence[float]], ...]:
        """Each line with a name that describes its position, since a terminal may have no color."""
        return (("upper: added hours as the work", self.spread), ("lower: all on-demand", self.on_demand))


def saving_curve(job: MixedJob) -> Curve:
    """The saving in percent, over the share of the job on spot."""
    jobs = [
        MixedJob(
            hours=job.hours,
            spot_share=share,
            failures=job.failures,
            hours_per_failure=job.hours_per_failure,
            spot_price=job.spot_price,
        )
        for share in _shares()
    ]
    return Curve(
        title=f"Saving of a {job.hours:g} h job with {job.added_hours:g} h added, spot at {job.spot_price:g}",
        x_label="% of the job on spot",
        y_label="% saved",
        x=_percent(_shares()),
        spread=_percent(each.saving.spread for each in jobs),
        on_demand=_percent(each.saving.on_demand for each in jobs),
    )


def tolerance_curve(spot_price: float) -> Curve:
    """How much longer the job may take before it costs more, in percent, over the share on spot."""
    tolerated = [tolerated_extension(share, spot_price) for share in _shares()]
    return Curve(
        title=f"How much longer a job may take before it costs more than on-demand, spot at {spot_price:g}",
        x_label="% of the job on spot",
        y_label="% longer",
        x=_percent(_shares()),
        spread=_percent(each.spread for each in tolerated),
        on_demand=_percent(each.on_demand for each in tolerated),
    )


def _shares() -> list[float]:
    return [place / (_POINTS - 1) for place in range(_POINTS)]


def _percent(values: Iterable[float]) -> list[float]:
    return [100 * value for value in values]


# Both libraries leave the rest of their keyword arguments untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


_COLUMNS = 72
_LINES = 14


def as_text(curve: Curve) -> str:
    """Draw the curve with characters and without color, so that logs can show it."""
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
