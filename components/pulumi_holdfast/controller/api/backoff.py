"""Exponential backoff with jitter."""

import random
from typing import Final

# The shortest and the longest wait in seconds: a restarted API server answers within a few seconds, and one that is
# down for longer does not need more than one request every half minute.
FIRST_SECONDS: Final = 0.2
MOST_SECONDS: Final = 30.0

# A server may ask for days by `Retry-After`: it is asked again before.
MOST_ASKED_SECONDS: Final = 300.0


class Backoff:
    """Waits that double from `first` to `most` seconds, each shortened at random by up to half.

    The server's `Retry-After` is a minimum. It is lengthened at random, because all clients that were rejected in the
    same second received the same value.
    """

    def __init__(
        self, *, first: float = FIRST_SECONDS, most: float = MOST_SECONDS, chance: random.Random | None = None
    ) -> None:
        self._first = first
        self._most = most
        self._chance = chance or random.Random()  # noqa: S311 - spreads requests, keeps no secret
        self._attempts = 0

    def succeed(self) -> None:
        """Start again with the shortest wait."""
        self._attempts = 0

    def seconds(self, asked_for: float | None = None) -> float:
        """Return how long to wait after one more failure, at least `asked_for` seconds, up to a limit."""
        # 2 ** 30 times the first wait exceeds every maximum; a larger exponent would overflow a float after some weeks.
        wait = min(self._most, self._first * 2.0 ** min(self._attempts, 30))
        self._attempts += 1
        wait *= self._chance.uniform(0.5, 1.0)
        if asked_for is None:
            return wait
        return max(wait, min(asked_for, MOST_ASKED_SECONDS) * self._chance.uniform(1.0, 1.5))
