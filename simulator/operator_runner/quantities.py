"""Kubernetes quantities, as the downward API hands them to a container."""

import math
import re
from fractions import Fraction

_SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000 ** (power + 1)) for power, letter in enumerate("kMGTPE")},
    **{f"{letter}i": Fraction(1024 ** (power + 1)) for power, letter in enumerate("KMGTPE")},
}
_QUANTITY = re.compile(r"^(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[numkMGTPE]?|[KMGTPE]i)$")


def parse_quantity(text: str) -> Fraction:
    """The exact value of a quantity such as `500m`, `1.5Gi` or `2`.

    Raises ValueError where the text is none.
    """
    match = _QUANTITY.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity: expected a number and a suffix such as m, Ki, Mi, Gi")
    return Fraction(match["number"]) * _SUFFIXES[match["suffix"]]


def in_units_of(quantity: str, divisor: str) -> int:
    """How many `divisor` a quantity is, rounded up; the divisor `0`, which charts write, means 1."""
    return math.ceil(parse_quantity(quantity) / (parse_quantity(divisor) or 1))
