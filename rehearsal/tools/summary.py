"""What `make tools` says at its end."""

from collections import Counter
from collections.abc import Mapping

from rich.table import Table

from rehearsal.tools.plan import State, Survey


def one_line(survey: Survey) -> str:
    """Return the line for a run that had nothing to make."""
    states = Counter(state.value for state in (*survey.tools.values(), *survey.charts.values()))
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"tools: nothing to make ({told})"


def table(survey: Survey, seconds: Mapping[str, float]) -> Table:
    """Return the table for a run that made something: each piece, where it is from, what it took."""
    shown = Table(box=None, pad_edge=False)
    shown.add_column("tool")
    shown.add_column("is")
    shown.add_column("seconds", justify="right")
    for piece, state in (*survey.tools.items(), *survey.charts.items()):
        made = seconds.get(piece.name)
        chart = "" if piece in survey.tools else " (chart)"
        now = state.value if state is not State.MISSING else "copied" if chart else "built"
        shown.add_row(f"{piece.name}{chart}", now, "" if made is None else f"{made:.0f}")
    return shown
