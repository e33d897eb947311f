"""Kubernetes quantities, added up exactly."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_SUFFIXES: Final = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_QUANTITY: Final = re.compile(
    r"^(?P<number>[+-]?(\d+(\.\d*)?|\.\d+))((?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?\d{1,3}))?$"
)


def parse_quantity(value: object) -> Fraction:
    """Return what a quantity amounts to; nothing where it is none, since the API server refuses those."""
    found = _QUANTITY.match(str(value).strip())
    if found is None:
        return Fraction(0)
    number = Fraction(found["number"])
    if found["exponent"]:
        return number * Fraction(10) ** int(found["exponent"])
    return number * _SUFFIXES[found["suffix"] or ""]


def format_quantity(amount: Fraction) -> str:
    """Return an amount as a quantity: whole, or in thousandths, rounded up to those."""
    if amount.denominator == 1:
        return str(amount.numerator)
    return f"{-(-amount.numerator * 1000 // amount.denominator)}m"
