"""What a rule reads and what it says, whatever engine asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.policies.known_values import Value


@dataclass(frozen=True, kw_only=True)
class StackResource:
    """One resource of a stack: its type token, its URN and its properties.

    `is_protected`: the engine refuses to delete it. `parent` is its parent's URN, empty for none. `refers_to` holds, by
    property, the URNs of the resources that its value was made of: known on preview, when the value is not.
    """

    type: str
    urn: str
    props: Mapping[str, Value]
    is_protected: bool = False
    parent: str = ""
    refers_to: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def logical_name(self) -> str:
        """The name the program gave the resource: the last part of its URN."""
        return self.urn.rpartition("::")[2]

    @property
    def stack(self) -> str:
        """The name of its stack: the third part of its URN."""
        return self.urn.split(":")[2] if self.urn.count(":") > 2 else ""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One statement of a rule about one resource.

    `proven` is false where the statement hangs on a value that only the update will know: such a finding is
    shown and stops nothing.
    """

    urn: str
    message: str
    proven: bool = True
