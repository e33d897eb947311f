"""What makes the way a ladder is walked one that can be walked: settings that would mean nothing are refused."""

from collections.abc import Iterator

from holdfast.scheduling.durations import format_duration
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.ladder import Ladder


def conduct_problems(ladder: Ladder, at: str) -> Iterator[Problem]:
    """Everything that is wrong with how a ladder is to be walked; `at` is the path where that is said."""
    if ladder.return_after is not None and len(ladder.tiers) == 1:
        yield Problem(
            field=f"{at}.returnAfter",
            value=f"{format_duration(ladder.return_after)} on a ladder of one tier",
            allowed="a time on a ladder of two tiers or more, because there is no better tier to go back to",
            fix="Leave it out, or add the tier that jobs should go back to.",
        )
    if ladder.hold_timeout is not None and ladder.return_after is None:
        yield Problem(
            field=f"{at}.holdTimeout",
            value=f"{format_duration(ladder.hold_timeout)} without returnAfter",
            allowed="a time beside returnAfter: capacity is held for jobs on their way back up, and for no others",
            fix="Add returnAfter, such as 4h, or leave it out.",
        )
