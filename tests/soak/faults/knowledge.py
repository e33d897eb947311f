"""What the controller may have gone by when it acted: it sees some things later than who only watches, some sooner. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from holdfast.fallback.state_machine.state import JobState
from tests.soak.faults.record import Record

#: How long nobody may lead after a kill: a lease runs out after 15 s, and a busy machine takes its time for the rest.
BLIND: Final = timedelta(minutes=2)
_INSTANT: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)


@dataclass(kw_only=True)
class Knowledge:
    """What the function had said of a job before each moment of the last minutes."""

    record: Record
    _lately: list[tuple[datetime, JobState]] = field(default_factory=list[tuple[datetime, JobState]])

    def learn(self, at: datetime, kept: JobState) -> None:
        """Take in what was kept until a moment."""
        oldest = at - max(BLIND, self.record.lag)
        self._lately = [*(each for each in self._lately if each[0] >= oldest), (at, kept)]

    def possible(self, at: datetime, kept: JobState) -> Iterator[tuple[datetime, JobState]]:
        """Each moment whose facts may have been the newest known, and what may have been kept then.

        A pod that is bound just now ends a wait, for who knows it. A wait begins when it is learned of. And of two watches
        either may be the first to show something.
        """
        late = self._late(at)
        earlier = [(then - _INSTANT, before) for then, before in reversed(self._lately) if at - then <= late]
        sooner = [(at + seconds, kept) for seconds in _seconds(self.record.lag)]
        moments = [(at, kept), *sooner, *earlier]
        yield from moments
        for then, before in moments:
            for waiting_since in _later(before, then, late):
                yield then, replace(before, waiting_since=waiting_since)

    def _late(self, at: datetime) -> timedelta:
        """How old what was known may have been: who was dead has learned nothing since."""
        blind_since = [kill for kill in self.record.kills if at - BLIND < kill < at]
        return max([self.record.lag, *(at - kill for kill in blind_since)])


def _later(kept: JobState, then: datetime, late: timedelta) -> Iterator[datetime]:
    begun = kept.waiting_since
    if begun is None:
        return
    yield from (begun + seconds for seconds in _seconds(late) if begun + seconds <= then)


def _seconds(length: timedelta) -> Iterator[timedelta]:
    return (number * _SECOND for number in range(1, int(length / _SECOND) + 1))
