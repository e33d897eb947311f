"""How often to checkpoint, from the notice a cloud gives, the checkpoint's size, and how fast it is written.

A checkpoint that fits into the notice is written at the notice, and the interval only bounds the cost of losses
*without* notice. One that does not fit needs a schedule short enough for every eviction. In both cases the interval is
Young's: √(2·w·m) for a write time w and a mean time m between the losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Checkpointing:
    """The checkpoints of a job, and the losses they protect against.

    `size_gib` is what all pods write together, `gib_per_second` their speed; `notice_seconds` the time that pods get
    between SIGTERM and SIGKILL; `evictions_per_hour` and `losses_without_notice_per_hour` are the job's, not a node's.

    Raises ValueError, naming the field, for a negative or infinite value, or a speed of 0.
    """

    size_gib: float
    gib_per_second: float
    notice_seconds: float
    evictions_per_hour: float
    losses_without_notice_per_hour: float = 0.0

    def __post_init__(self) -> None:
        for field, value in vars(self).items():
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"{field}: got {value}; allowed: 0 or more")
        if self.gib_per_second == 0:
            raise ValueError("gib_per_second: got 0; allowed: more than 0")

    @property
    def write_seconds(self) -> float:
        """The duration of writing a checkpoint, in seconds."""
        return self.size_gib / self.gib_per_second

    @property
    def fits_in_notice(self) -> bool:
        """Whether a checkpoint that starts at the notice ends in time."""
        return self.write_seconds <= self.notice_seconds

    @property
    def interval_seconds(self) -> float:
        """The interval between checkpoints; infinite if every loss comes with enough notice."""
        unsaved = self.losses_without_notice_per_hour + (
            0 if self.fits_in_notice else self.evictions_per_hour
        )
        return math.inf if unsaved == 0 else math.sqrt(2 * self.write_seconds * 3600 / unsaved)

    @property
    def overhead(self) -> float:
        """The share of time spent on writing checkpoints or on repeated work, at that interval."""
        if math.isinf(self.interval_seconds) or self.interval_seconds == 0:
            return 0.0
        unsaved = self.losses_without_notice_per_hour + (
            0 if self.fits_in_notice else self.evictions_per_hour
        )
        return self.write_seconds / self.interval_seconds + unsaved * self.interval_seconds / 2 / 3600
