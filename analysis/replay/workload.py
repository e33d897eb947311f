"""The job that is replayed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

_AT_ONCE = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A job: how long it trains undisturbed, on how many instances at once, and what a disturbance costs it.

    `restart`: from the last instance's arrival to the first new step; paid for, and part of every start, the first
    included. `boot`: how long an instance needs to arrive, paid for as well. `grace`: how long pods take to terminate
    on a move. `checkpoint_every`: what an eviction takes back at most; None where the notice is long enough for a
    checkpoint.

    Raises ValueError, naming the field, for what is no job.
    """

    work: timedelta
    nodes: int = 1
    restart: timedelta = _AT_ONCE
    boot: timedelta = _AT_ONCE
    grace: timedelta = _AT_ONCE
    checkpoint_every: timedelta | None = None

    def __post_init__(self) -> None:
        if self.work <= _AT_ONCE:
            raise ValueError(f"work: got {self.work}; allowed: more than 0")
        if self.nodes < 1:
            raise ValueError(f"nodes: got {self.nodes}; allowed: 1 or more")
        for field, value in (("restart", self.restart), ("boot", self.boot), ("grace", self.grace)):
            if value < _AT_ONCE:
                raise ValueError(f"{field}: got {value}; allowed: 0 or more")
        if self.checkpoint_every is not None and self.checkpoint_every <= _AT_ONCE:
            raise ValueError(f"checkpoint_every: got {self.checkpoint_every}; allowed: more than 0")

    @property
    def undisturbed(self) -> timedelta:
        """What it takes on machines that nobody takes away: the measure of all costs."""
        return self.boot + self.restart + self.work
