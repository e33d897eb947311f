"""Required node affinity, as the scheduler reads it, over labels that may not all be known."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import GIVEN_LABEL_PATTERN

_GIVEN: Final = re.compile(GIVEN_LABEL_PATTERN)
_WHOLE: Final = re.compile(r"^-?[0-9]{1,18}$", re.ASCII)


def label_of(labels: Mapping[str, str | Unknown], key: str) -> str | Unknown | None:
    """The value of a node label; UNKNOWN too where the cloud may give nodes one that nobody declares."""
    if key in labels:
        return labels[key]
    return UNKNOWN if _GIVEN.match(key) else None


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One expression of a term: In, NotIn, Exists, DoesNotExist, Gt or Lt. Of any other nothing can be told."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str | Unknown]) -> bool | Unknown:
        """Whether it is true of nodes with these labels."""
        there = label_of(labels, self.key)
        if there is UNKNOWN:
            return UNKNOWN
        match self.operator:
            case "In":
                return there is not None and there in self.values
            case "NotIn":
                return there is None or there not in self.values
            case "Exists":
                return there is not None
            case "DoesNotExist":
                return there is None
            case "Gt" | "Lt":
                return there is not None and self._compares(there)
            case _:
                return UNKNOWN

    def _compares(self, there: str) -> bool:
        bound = self.values[0] if self.values else ""
        if _WHOLE.match(there) is None or _WHOLE.match(bound) is None:
            return False
        return int(there) > int(bound) if self.operator == "Gt" else int(there) < int(bound)


#: Requirements that all have to hold. Without any it is true of no node.
Term: TypeAlias = tuple[Requirement, ...]


def term_holds(term: Term, labels: Mapping[str, str | Unknown]) -> bool | Unknown:
    """Whether a term is true of nodes with these labels."""
    found = [each.holds(labels) for each in term]
    if not found or False in found:
        return False
    return UNKNOWN if UNKNOWN in found else True


def any_holds(terms: tuple[Term, ...], labels: Mapping[str, str | Unknown]) -> bool | Unknown:
    """Whether one of the alternatives is; without any nothing is required."""
    found = [term_holds(term, labels) for term in terms]
    if not found or True in found:
        return True
    return UNKNOWN if UNKNOWN in found else False


def keys_of(terms: tuple[Term, ...]) -> tuple[str, ...]:
    """The keys that the terms ask for, each once."""
    return tuple(sorted({each.key for term in terms for each in term}))
