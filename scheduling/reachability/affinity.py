"""Required node affinity as the scheduler evaluates it, on labels that may be unknown."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import GIVEN_LABEL_PATTERN

_GIVEN: Final = re.compile(GIVEN_LABEL_PATTERN)
_WHOLE: Final = re.compile(r"^-?[0-9]{1,18}$", re.ASCII)


def label_of(labels: Mapping[str, str | Unknown], key: str) -> str | Unknown | None:
    """The value of a node label; UNKNOWN also if the cloud may set the label although the pool does not declare it."""
    if key in labels:
        return labels[key]
    return UNKNOWN if _GIVEN.match(key) else None


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One expression of a term: In, NotIn, Exists, DoesNotExist, Gt or Lt. Any other operator is UNKNOWN."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str | Unknown]) -> bool | Unknown:
        """Whether it matches nodes with these labels."""
        value = label_of(labels, self.key)
        if value is UNKNOWN:
            return UNKNOWN
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and self._compares(value)
            case _:
                return UNKNOWN

    def _compares(self, value: str) -> bool:
        bound = self.values[0] if self.values else ""
        if _WHOLE.match(value) is None or _WHOLE.match(bound) is None:
            return False
        return int(value) > int(bound) if self.operator == "Gt" else int(value) < int(bound)


#: Requirements that all have to match. A term without any matches no node.
Term: TypeAlias = tuple[Requirement, ...]


def term_holds(term: Term, labels: Mapping[str, str | Unknown]) -> bool | Unknown:
    """Whether a term matches nodes with these labels."""
    found = [each.holds(labels) for each in term]
    if not found or False in found:
        return False
    return UNKNOWN if UNKNOWN in found else True


def any_holds(terms: tuple[Term, ...], labels: Mapping[str, str | Unknown]) -> bool | Unknown:
    """Whether one of the terms matches; without terms any node does."""
    found = [term_holds(term, labels) for term in terms]
    if not found or True in found:
        return True
    return UNKNOWN if UNKNOWN in found else False


def keys_of(terms: tuple[Term, ...]) -> tuple[str, ...]:
    """The keys of the terms, sorted."""
    return tuple(sorted({each.key for term in terms for each in term}))
