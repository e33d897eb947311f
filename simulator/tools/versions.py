"""Versions as programs print them, and which of them are good."""

import re
from dataclasses import dataclass
from enum import Enum

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?")


@dataclass(frozen=True, kw_only=True, order=True)
class Version:
    """A released version: three numbers. A pre-release is no version here."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


class Accepts(Enum):
    """Which versions beside the pinned one do the same work."""

    EXACT = "exactly {pin}"
    SAME_MAJOR = "{pin} or newer, below {next_major}"
    NEIGHBOUR_MINOR = "{pin} or at most one minor version away"

    def good(self, found: Version, pin: Version) -> bool:
        """Whether `found` may stand in for `pin`."""
        if self is Accepts.EXACT:
            return found == pin
        if self is Accepts.SAME_MAJOR:
            return found.major == pin.major and found >= pin
        return found.major == pin.major and abs(found.minor - pin.minor) <= 1

    def wanted(self, pin: Version) -> str:
        """The good versions in words: `3.245.0 or newer, below 4`."""
        return self.value.format(pin=pin, next_major=pin.major + 1)


def parse_version(text: str) -> Version | None:
    """Return the first version in a program's answer, or None where there is no released one."""
    match = _VERSION.search(text)
    if match is None or match[4]:
        return None
    return Version(major=int(match[1]), minor=int(match[2]), patch=int(match[3]))
