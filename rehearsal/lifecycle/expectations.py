"""What an act of a rehearsal must have shown; pure."""

from collections.abc import Sequence

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.pulumi import Outcome

# How many things a message names before it says how many more there are.
_NAMED = 5


def refuse_changes(moment: str, outcome: Outcome) -> None:
    """Raise RehearsalError where a run changed something that had nothing to change, with what it changed."""
    if outcome.changed:
        raise RehearsalError(f"{moment} changed {some([step.told for step in outcome.steps])}")


def refuse_leftovers(left: Sequence[str]) -> None:
    """Raise RehearsalError where a destroyed stack has left something behind."""
    if left:
        raise RehearsalError(f"the destroyed stack has left {some(left)}")


def some(told: Sequence[str]) -> str:
    """Return the first few of several things, and how many more there are."""
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return f"{', '.join(told[:_NAMED])}{more}"
