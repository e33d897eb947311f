"""What can go wrong between us and an API server."""

# ruff: noqa: N818 - a name that says what is wrong needs no "Error" behind it

from typing import Final

_CONFLICT: Final = 409
_GONE: Final = 410
_MISSING: Final = 404
_THROTTLED: Final = 429
_SERVER: Final = 500


class ApiError(Exception):
    """The API server refused a request: its status code, its reason and its own words.

    `retry_after_seconds` is how long it asks to be left alone, None where it does not say.
    """

    def __init__(
        self, status: int, reason: str, message: str, *, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message or f"the API server answered {status} {reason}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_seconds = retry_after_seconds

    @property
    def is_conflict(self) -> bool:
        """Whether the object is another than the one we saw: look again before deciding anything."""
        return self.status == _CONFLICT

    @property
    def is_missing(self) -> bool:
        """Whether there is no such object, or the server serves no such kind."""
        return self.status == _MISSING

    @property
    def is_too_old(self) -> bool:
        """Whether the server no longer holds the version we asked to go on from: list again."""
        return self.status == _GONE

    @property
    def is_overload(self) -> bool:
        """Whether the request was right and the server is too busy or too broken to do it: ask again later."""
        return self.status == _THROTTLED or self.status >= _SERVER


class Unreachable(Exception):
    """Nothing answers where the API server should be, or the answer broke off."""

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(f"the API server at {server} does not answer ({cause})")
        self.server = server


class Deposed(Exception):
    """Another replica may lead by now, so nothing is written."""

    def __init__(self) -> None:
        super().__init__("this replica no longer leads: it writes nothing")
