"""The table of moves beside restarts. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from tests.soak.bench.fallback.costs import Cost
from tests.soak.bench.fallback.measuring import Measured, Wave
from tests.soak.bench.fallback.timing import Spread, spread

_MIB: Final = 1024 * 1024
TIMES: Final = ("jobs", "what", "decided", "pods gone", "resumed", "nodes for all", "19 of 20", "ratio")
COSTS: Final = ("jobs", "what", "controller CPU", "JobSet CPU", "ratio", "controller", "JobSet", "ratio")


def time_rows(measured: Measured) -> list[Sequence[str]]:
    """Return a line for the move and one for the restart: medians, in seconds since the eviction."""
    moved, restarted = _bound(measured.move), _bound(measured.restart)
    return [
        (
            str(measured.jobs),
            what,
            _median(steps.decided for steps in wave.steps),
            _median(steps.gone for steps in wave.steps),
            _median(steps.resumed for steps in wave.steps),
            f"{bound.median:.2f} s",
            f"{bound.most:.2f} s",
            f"{bound.median / restarted.median:.2f}",
        )
        for what, wave, bound in (
            ("move", measured.move, moved),
            ("restart", measured.restart, restarted),
        )
    ]


def cost_rows(measured: Measured) -> list[Sequence[str]]:
    """Return a line for the move and one for the restart: what both controllers spent on all jobs together."""
    return [
        (
            str(measured.jobs),
            what,
            f"{wave.fallback.cpu_seconds:.2f} s",
            f"{wave.jobset.cpu_seconds:.2f} s",
            _ratio(wave.fallback.cpu_seconds, wave.jobset.cpu_seconds),
            _mib(wave.fallback),
            _mib(wave.jobset),
            _ratio(wave.fallback.bytes, wave.jobset.bytes),
        )
        for what, wave in (("move", measured.move), ("restart", measured.restart))
    ]


def _bound(wave: Wave) -> Spread:
    return spread(steps.bound for steps in wave.steps)


def _median(figures: Iterable[float | None]) -> str:
    known = [figure for figure in figures if figure is not None]
    return f"{spread(known).median:.2f} s" if known else "–"


def _ratio(one: float, other: float) -> str:
    return f"{one / other:.2f}" if other else "–"


def _mib(cost: Cost) -> str:
    return f"{cost.bytes / _MIB:.0f} MiB"
