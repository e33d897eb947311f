"""Node selectors and required node affinity as the scheduler and Karpenter evaluate them, on labels that may be unknown."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown, all_true
from pulumi_holdfast.ladder.labels import GIVEN_LABEL_PATTERN
from pulumi_holdfast.ladder.reachability.label_values import LabelValues, whole
from pulumi_holdfast.ladder.reachability.node_labels import ALIASES

_GIVEN: Final = re.compile(GIVEN_LABEL_PATTERN)
_LABEL_VALUE: Final = re.compile(r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$", re.ASCII)

#: A number as Karpenter writes it.
_PICK: Final = re.compile(r"^(0|[1-9][0-9]{0,18})$", re.ASCII)

#: Of so many numbers, Karpenter picks none twice.
_MANY: Final = 2**32


class Undeclared(Enum):
    """A label that Karpenter knows from no requirement and no machine type."""

    UNDECLARED = "undeclared"


UNDECLARED: Final = Undeclared.UNDECLARED

#: What is known of a node label: its value; the values of which Karpenter sets one, none for nodes without it; that it is
#: UNDECLARED; or UNKNOWN.
LabelFact: TypeAlias = str | LabelValues | Literal[Undeclared.UNDECLARED] | Unknown

#: The entry for all labels that are not listed: without it, a cloud may set some of them.
OTHERS: Final = "*"

#: Nodes certainly do not have the label.
ABSENT: Final = LabelValues()


def label_of(labels: Mapping[str, LabelFact], key: str) -> LabelFact | None:
    """What is known of a node label; UNKNOWN also if the cloud may set it although the pool does not declare it."""
    key = ALIASES.get(key, key)
    if key in labels or OTHERS in labels:
        return labels.get(key, labels.get(OTHERS))
    return UNKNOWN if _GIVEN.match(key) else None


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One expression of a term: In, NotIn, Exists, DoesNotExist, Gt or Lt. Any other operator is UNKNOWN."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def accepts(self, value: str | None) -> bool | Unknown:
        """Whether it matches nodes with this value of the label; None: without the label."""
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

    @property
    def is_valid(self) -> bool:
        """Whether the scheduler reads it; otherwise its term matches no node."""
        if self.operator in {"Gt", "Lt"} and (len(self.values) != 1 or whole(self.values[0]) is None):
            return False
        return all(_LABEL_VALUE.match(value) for value in self.values)

    def _compares(self, value: str) -> bool:
        number, bound = whole(value), whole(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


#: Requirements that all have to match. A term without any matches no node.
Term: TypeAlias = tuple[Requirement, ...]


def term_holds(term: Term, labels: Mapping[str, LabelFact]) -> bool | Unknown:
    """Whether a term matches nodes with these labels, or nodes that Karpenter can make."""
    if not all(each.is_valid for each in term):
        return False
    keys = dict.fromkeys(ALIASES.get(each.key, each.key) for each in term)
    found = [
        _holds([each for each in term if ALIASES.get(each.key, each.key) == key], label_of(labels, key))
        for key in keys
    ]
    if not found or False in found:
        return False
    return UNKNOWN if UNKNOWN in found else True


def _holds(requirements: Sequence[Requirement], fact: LabelFact | None) -> bool | Unknown:
    """Whether one label meets all requirements on it."""
    if fact is UNKNOWN:
        return UNKNOWN
    if fact is None or isinstance(fact, str):
        return _all_accept(requirements, fact)
    try:
        wanted = LabelValues.joint(LabelValues.of(each.operator, each.values) for each in requirements)
    except ValueError:
        return UNKNOWN
    if not (wanted.accepts_absence if fact is UNDECLARED else fact.meets(wanted)):
        return False
    left = wanted if fact is UNDECLARED else fact & wanted
    if left.is_empty:
        return _all_accept(requirements, None)
    if not left.is_complement:
        return True
    # Karpenter picks any number within the bounds, also one that is excluded, and the scheduler rejects that.
    picks = left.picks()
    rejected = [each for each in wanted.values if _PICK.match(each) and int(each) in picks]
    if len(rejected) == len(picks):
        return False
    return True if not rejected or len(picks) > _MANY else UNKNOWN


def _all_accept(requirements: Sequence[Requirement], value: str | None) -> bool | Unknown:
    return all_true(each.accepts(value) for each in requirements)


def any_holds(terms: tuple[Term, ...], labels: Mapping[str, LabelFact]) -> bool | Unknown:
    """Whether one of the terms matches; without terms any node does."""
    found = [term_holds(term, labels) for term in terms]
    if not found or True in found:
        return True
    return UNKNOWN if UNKNOWN in found else False


def keys_of(terms: tuple[Term, ...]) -> tuple[str, ...]:
    """The keys of the terms, sorted."""
    return tuple(sorted({each.key for term in terms for each in term}))
