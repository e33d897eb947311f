"""The seed of a random draw: given, from the environment, or drawn and printed."""

import secrets

from pulumi_holdfast.rehearsal.errors import RehearsalError

SEED_VARIABLE = "HOLDFAST_SEED"


def seed_of(given: int | None, variable: str | None) -> int:
    """Return the option's seed, else the variable's, else a drawn one. Raises RehearsalError if it is not a number."""
    if given is not None:
        return given
    if not variable:
        return secrets.randbelow(1_000_000)
    if not variable.isdecimal():
        raise RehearsalError(f"{SEED_VARIABLE} is {variable!r}: set it to a number such as 42")
    return int(variable)
