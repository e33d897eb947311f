"""Copies of frozen dataclasses with other values, as `dataclasses.replace` makes them, in a tenth of its time.

`dataclasses.replace` passes every field through `__init__`, which sets those of a frozen class one by one: 30 µs for an object of
sixty fields, a dozen times in each reconciliation of a job.
"""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def replace(obj: T, /, **changes: Any) -> T:  # as dataclasses.replace: type checkers know no more
    """Return a copy of a frozen dataclass with some values changed.

    Its class has neither slots nor `__post_init__`: nothing is computed when an object is made.
    """
    before = vars(obj)
    if hasattr(obj, "__post_init__"):
        raise TypeError(f"{type(obj).__name__} computes values when it is made: use dataclasses.replace")
    if not changes.keys() <= before.keys():
        unknown = ", ".join(sorted(changes.keys() - before.keys()))
        raise TypeError(f"{type(obj).__name__} has no field {unknown}")
    copied = object.__new__(type(obj))
    vars(copied).update(before, **changes)
    return copied
