"""Node selectors and required node affinity as the scheduler and Karpenter evaluate them, on labels that may be unknown.

Karpenter sets a label that a NodePool leaves open to a value that its pods accept (Karpenter v1.14.1,
pkg/scheduling/requirement.go and requirements.go).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown, all_true
from pulumi_holdfast.ladder.labels import GIVEN_LABEL_PATTERN
from pulumi_holdfast.ladder.reachability.node_labels import ALIASES

_WHOLE: Final = re.compile(r"^[0-9]{1,19}$", re.ASCII)

#: The largest number that the scheduler and Karpenter read.
_MOST: Final = 2**63 - 1

#: The operators of a NodePool's requirements; pods have the first six.
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")


@dataclass(frozen=True, kw_only=True)
class LabelValues:
    """A set of values: `values`, or all others if `is_complement`; numbers within the bounds if it has any.

    An empty set stands for a node without the label.
    """

    values: frozenset[str] = frozenset()
    is_complement: bool = False
    at_least: int | None = None
    at_most: int | None = None

    @classmethod
    def of(cls, operator: str, values: Iterable[str] = ()) -> "LabelValues":
        """The values that an operator allows. Raises ValueError for an unknown operator, or a bound that is no integer."""
        given = tuple(values)
        match operator:
            case "In":
                return cls(values=frozenset(given))
            case "NotIn":
                return cls(values=frozenset(given), is_complement=True)
            case "Exists":
                return cls(is_complement=True)
            case "DoesNotExist":
                return cls()
            case "Gt":
                return cls(is_complement=True, at_least=_bound(given) + 1)
            case "Gte":
                return cls(is_complement=True, at_least=_bound(given))
            case "Lt":
                return cls(is_complement=True, at_most=_bound(given) - 1)
            case "Lte":
                return cls(is_complement=True, at_most=_bound(given))
            case _:
                raise ValueError(f"{operator} is not an operator of a requirement")

    @classmethod
    def joint(cls, parts: Iterable["LabelValues"]) -> "LabelValues":
        """The values in all of them; any value if there are none."""
        found = cls(is_complement=True)
        for part in parts:
            found &= part
        return found

    def __and__(self, other: "LabelValues") -> "LabelValues":
        """The values in both; empty if they contradict each other."""
        at_least = max(_known(self.at_least, other.at_least), default=None)
        at_most = min(_known(self.at_most, other.at_most), default=None)
        if at_least is not None and at_most is not None and at_least > at_most:
            return LabelValues()
        if self.is_complement and other.is_complement:
            return LabelValues(
                values=frozenset(
                    each for each in self.values | other.values if _is_within(each, at_least, at_most)
                ),
                is_complement=True,
                at_least=at_least,
                at_most=at_most,
            )
        if self.is_complement or other.is_complement:
            listed, others = (other, self) if self.is_complement else (self, other)
            found = listed.values - others.values
        else:
            found = self.values & other.values
        return LabelValues(values=frozenset(each for each in found if _is_within(each, at_least, at_most)))

    def __contains__(self, value: str) -> bool:
        """Whether the label may have this value."""
        return (value in self.values) is not self.is_complement and _is_within(
            value, self.at_least, self.at_most
        )

    @property
    def only(self) -> str | None:
        """The value if there is exactly one."""
        return next(iter(self.values)) if not self.is_complement and len(self.values) == 1 else None

    @property
    def is_empty(self) -> bool:
        """Whether no value is left, so that nodes do not have the label."""
        return not self.is_complement and not self.values

    @property
    def accepts_absence(self) -> bool:
        """Whether Karpenter reads it as `NotIn` or `DoesNotExist`, which a node without the label satisfies."""
        return bool(self.values) if self.is_complement else not self.values

    def picks(self) -> range:
        """The numbers of which Karpenter sets one if any value but `values` is allowed; it fails if there are none.

        It picks one of those within the bounds without regard to `values`.
        """
        return range(self.at_least or 0, _MOST if self.at_most is None else self.at_most + 1)

    def meets(self, required: "LabelValues") -> bool:
        """Whether Karpenter can choose a value that also meets what pods require of the label."""
        return not (self & required).is_empty or (self.accepts_absence and required.accepts_absence)


def _bound(values: tuple[str, ...]) -> int:
    bound = whole(values[0]) if len(values) == 1 else None
    if bound is None:
        raise ValueError(f"{', '.join(values) or 'nothing'} is not one integer")
    return bound


def whole(value: str) -> int | None:
    """The number that a label has as its value, None for another value: a label has no sign."""
    number = int(value) if _WHOLE.match(value) else None
    return None if number is None or number > _MOST else number


def _known(*bounds: int | None) -> list[int]:
    return [bound for bound in bounds if bound is not None]


def _is_within(value: str, at_least: int | None, at_most: int | None) -> bool:
    if at_least is None and at_most is None:
        return True
    number = whole(value)
    if number is None:
        return False
    return (at_least is None or number >= at_least) and (at_most is None or number <= at_most)


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
