"""What a rule reads and what it says, whatever engine asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.known_values import Value


@dataclass(frozen=True, kw_only=True)
class StackResource:
    """One resource of a stack: its type token, its URN and its properties."""

    type: str
    urn: str
    props: Mapping[str, Value]

    @property
    def logical_name(self) -> str:
        """The name the program gave the resource: the last part of its URN."""
        return self.urn.rpartition("::")[2]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One statement of a rule about one resource.

    `proven` is false where the statement hangs on a value that only the update will know: such a finding is
    shown and stops nothing.
    """

    urn: str
    message: str
    proven: bool = True
