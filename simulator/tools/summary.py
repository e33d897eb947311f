"""What `make tools` says at its end."""

from collections import Counter
from collections.abc import Mapping

from rich.table import Table

from holdfast.simulator.tools.catalogue import Tool
from holdfast.simulator.tools.plan import Survey


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
        made = seconds.get(piece.title)
        now = state.value if made is None else "built" if isinstance(piece, Tool) else "copied"
        shown.add_row(piece.title, now, "" if made is None else f"{made:.0f}")
    return shown
