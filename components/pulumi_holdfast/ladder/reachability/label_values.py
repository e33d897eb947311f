"""The values that a node label may have, and how Karpenter and the scheduler compare them with what pods require.

Karpenter sets a label that a NodePool leaves open to a value that its pods accept (Karpenter v1.14.1,
pkg/scheduling/requirement.go and requirements.go).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

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
