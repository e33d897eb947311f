"""What is asked of an API server, and what may become of it. Pure."""

from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Final

_NOBODYS: Final = ("/leases", "/events")


class Fate(StrEnum):
    """What becomes of a request."""

    PASS = auto()
    THROTTLE = auto()  #: 429, to be asked again in a second
    FAIL = auto()  #: 500
    LOSE = auto()  #: it never arrives
    LOSE_ANSWER = auto()  #: it is done, and nobody is told


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request: `path` without its query."""

    method: str
    path: str
    watch: bool

    @property
    def is_write(self) -> bool:
        """Whether it is to change a job or what belongs to one, and not a Lease or an Event."""
        return self.method != "GET" and not any(each in self.path for each in _NOBODYS)
