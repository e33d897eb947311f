"""Where every job that follows a ladder stands, for whoever wants to count them."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.state_machine.state import JobState, Phase


@dataclass(frozen=True, kw_only=True)
class Place:
    """A job's place: the pool it is on or bound for, and its phase."""

    pool: str
    phase: Phase


class Roster:
    """The unfinished jobs with their places. `changed` is told of each namespace in which one has changed."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._places: dict[str, dict[JobKey, Place]] = {}

    def set(self, key: JobKey, state: JobState | None) -> None:
        """Take in where a job stands; None for one that follows no ladder, or is gone."""
        place = None
        if state is not None and state.phase is not Phase.FINISHED:
            place = Place(pool=state.pool, phase=state.phase)
        places = self._places.get(key.namespace, {})
        if places.get(key) == place:
            return
        if place is None:
            places.pop(key, None)
        else:
            places[key] = place
        self._places[key.namespace] = places
        self._changed(key.namespace)

    def in_namespace(self, namespace: str) -> list[Place]:
        """Return the places of a namespace's jobs."""
        return list(self._places.get(namespace, {}).values())

    def counts(self) -> Iterator[tuple[str, Place, int]]:
        """Yield how many jobs of each namespace are in each place."""
        for namespace, places in self._places.items():
            for place, count in Counter(places.values()).items():
                yield namespace, place, count

    def clear(self) -> None:
        """Forget all: somebody else counts from now on."""
        self._places.clear()
