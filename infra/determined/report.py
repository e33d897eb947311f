"""What is found while pools are read: what is wrong, and what a reader should know."""

from dataclasses import dataclass, field

from holdfast.scheduling.errors import Problem


@dataclass(frozen=True, kw_only=True)
class Report:
    """Problems keep pools from being turned into a stack's; notes only say what was left behind or made up."""

    problems: list[Problem] = field(default_factory=list[Problem])
    notes: list[str] = field(default_factory=list[str])
