"""The report of a drill, as text and as JSON. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.cli.kubectl.drill.recovery import Stage
from pulumi_holdfast.cli.kubectl.job_view import table

if TYPE_CHECKING:
    from pulumi_holdfast.cli.kubectl.drill.plan import Taking, Target
    from pulumi_holdfast.cli.kubectl.drill.recovery import Progress, Recovery
    from pulumi_holdfast.ladder.json import Json

_MEANING: Final = {
    Stage.LOST: "the first pod is lost",
    Stage.REPLACED: "a new pod exists",
    Stage.PLACED: "every pod has a node",
    Stage.STARTED: "every pod runs",
    Stage.REPORTED: "the program continues from its checkpoint",
    Stage.RECOVERED: "its progress is past the old value",
}


@dataclass(frozen=True, kw_only=True)
class DrillResult:
    """A drill: the interruption, the recovery, and the price of one of the job's nodes per hour, None if it is not known."""

    job: str
    taking: Taking | None
    target: Target
    recovery: Recovery
    price: float | None = None
    most_lost: float | None = None

    @property
    def node_hours(self) -> float:
        """The time of the job's nodes between the loss and the recovery."""
        return self.recovery.node_seconds / 3600

    @property
    def cost(self) -> float | None:
        """What that time cost."""
        return None if self.price is None else self.node_hours * self.price

    @property
    def problem(self) -> str | None:
        """Why the drill fails a pipeline; None if it passes."""
        lost = self.recovery.steps_lost
        if not self.recovery.is_complete:
            return f"the progress did not pass {_progress(self.recovery.before)} within the time limit"
        if self.most_lost is not None and lost is not None and lost > self.most_lost:
            return f"{_number(lost)} steps were lost; allowed by --max-lost-steps: {_number(self.most_lost)}"
        return None


def report_text(result: DrillResult) -> str:
    """Return the report for a person."""
    found = result.recovery
    rows = [
        (stage.value, _MEANING[stage], f"{found.stages[stage]:.1f} s")
        for stage in Stage
        if stage in found.stages
    ]
    lines = [
        table(("STAGE", "REACHED WHEN", "AFTER"), rows) if rows else "No pod of the job was lost.",
        "",
        f"progress before  {_progress(found.before)}",
        f"resumed at       {_progress(found.after) if found.after else 'nothing reported'}",
        f"lost             {_lost(found)}",
        f"money            {_money(result)}",
    ]
    return "\n".join(lines)


def report_object(result: DrillResult) -> Json:
    """Return the report for a program; every field is always there."""
    found = result.recovery
    return {
        "job": result.job,
        "taken": "by hand" if result.taking is None else result.taking.value,
        "node": result.target.node,
        "pool": found.pool,
        "recovered": found.is_complete,
        "progressBefore": found.before.done,
        "progressAfter": None if found.after is None else found.after.done,
        "progressTotal": found.before.total,
        "stepsLost": found.steps_lost,
        "seconds": {stage.value: round(found.stages[stage], 3) for stage in Stage if stage in found.stages},
        "nodeHours": round(result.node_hours, 6),
        "cost": None if result.cost is None else round(result.cost, 6),
        "problem": result.problem,
    }


def _lost(found: Recovery) -> str:
    lost = found.steps_lost
    if lost is None:
        return "unknown: the program has not reported since"
    if found.before.total == 1:
        return f"{lost:.2%} of the work"
    return f"{_number(lost)} steps, {lost / found.before.total:.2%} of the work"


def _money(result: DrillResult) -> str:
    hours = f"{result.node_hours:.3f} node-hours until the progress was back"
    if result.cost is None:
        return f"{hours}; set `price` on the tier, or --price, for an amount"
    return f"{result.cost:.4f} ({hours}, at {result.price:g} per node-hour)"


def _progress(progress: Progress) -> str:
    if progress.total == 1:
        return f"{progress.share:.2%}"
    return f"{_number(progress.done)} of {_number(progress.total)} steps"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:g}"
