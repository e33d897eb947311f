"""Which gangs wait in which pool with half of their pods placed: two of them may wait for each other for ever."""

from bisect import insort
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.state_machine.observation import Observation, Rival


@dataclass(frozen=True, kw_only=True, order=True)
class _Gang:
    rival: Rival
    pool: str
    key: JobKey


class Gangs:
    """The half-placed gangs of each pool, by age. `wake` has those looked at that may be the next to let go.

    Those are the youngest alone: with a thousand jobs that wait at once, waking all of them for each was a million looks.
    """

    def __init__(self, wake: Callable[[JobKey], None]) -> None:
        self._wake = wake
        self._half_placed: dict[JobKey, _Gang] = {}
        self._by_age: defaultdict[str, list[_Gang]] = defaultdict(list)
        self._gave_way: dict[str, datetime] = {}

    def see(self, key: JobKey, seen: Observation) -> Rival | None:
        """Take in how a job stands, and return the youngest of the gangs that it may block and be blocked by."""
        before, gang = self._half_placed.get(key), _half_placed(key, seen)
        if before is not None and seen.suspended:
            self._gave_way[before.pool] = seen.now
        if before != gang:
            self._replace(key, before, gang)
        if gang is None:
            return None
        return next((each.rival for each in reversed(self._by_age[gang.pool]) if each.key != key), None)

    def gave_way_at(self, pool: str | None) -> datetime | None:
        """When a gang was last seen to have let go of its nodes in a pool; None where none was."""
        return None if pool is None else self._gave_way.get(pool)

    def forget(self, key: JobKey) -> None:
        """Take in that a job is gone."""
        before = self._half_placed.get(key)
        if before is not None:
            self._replace(key, before, None)

    def _replace(self, key: JobKey, before: _Gang | None, gang: _Gang | None) -> None:
        if before is not None:
            pool = self._by_age[before.pool]
            was_youngest = pool[-1] == before
            pool.remove(before)
            del self._half_placed[key]
            if was_youngest and len(pool) > 1:
                self._wake(pool[-1].key)
        if gang is not None:
            pool = self._by_age[gang.pool]
            insort(pool, gang)
            self._half_placed[key] = gang
            is_first_rival = len(pool) == 2 and pool[-1] != gang
            if is_first_rival:
                self._wake(pool[-1].key)


def _half_placed(key: JobKey, seen: Observation) -> _Gang | None:
    waits = seen.follows and not seen.suspended and seen.outcome is None and seen.is_half_placed
    if not waits or seen.pool is None:
        return None
    return _Gang(key=key, pool=seen.pool, rival=Rival(uid=seen.uid, created=seen.created))
