"""Which gangs wait in which pool with half of their pods placed: two of them may wait for each other for ever."""

from collections.abc import Callable
from dataclasses import dataclass

from fallback.jobs.snapshot import JobKey
from fallback.ladder.observation import Observation, Rival


@dataclass(frozen=True, kw_only=True)
class _Gang:
    pool: str
    rival: Rival


class Gangs:
    """The half-placed gangs, by the jobs they are of. `wake` has those looked at for which the picture has changed."""

    def __init__(self, wake: Callable[[JobKey], None]) -> None:
        self._wake = wake
        self._half_placed: dict[JobKey, _Gang] = {}

    def see(self, key: JobKey, seen: Observation) -> tuple[Rival, ...]:
        """Take in how a job stands, and return the gangs it may block and be blocked by."""
        gang = _half_placed(seen)
        self._set(key, gang)
        return () if gang is None else self._rivals(key, gang)

    def forget(self, key: JobKey) -> None:
        """Take in that a job is gone."""
        self._set(key, None)

    def _set(self, key: JobKey, gang: _Gang | None) -> None:
        before = self._half_placed.get(key)
        if before == gang:
            return
        if gang is None:
            self._half_placed.pop(key, None)
        else:
            self._half_placed[key] = gang
        pools = {each.pool for each in (before, gang) if each is not None}
        for other, its in self._half_placed.items():
            if other != key and its.pool in pools:
                self._wake(other)

    def _rivals(self, key: JobKey, gang: _Gang) -> tuple[Rival, ...]:
        return tuple(
            its.rival for other, its in self._half_placed.items() if other != key and its.pool == gang.pool
        )


def _half_placed(seen: Observation) -> _Gang | None:
    waits = seen.follows and not seen.suspended and seen.outcome is None and seen.is_half_placed
    if not waits or seen.pool is None:
        return None
    return _Gang(pool=seen.pool, rival=Rival(uid=seen.uid, created=seen.created))
