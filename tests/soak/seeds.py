"""The seed of a random draw: given, from the environment, or drawn and printed."""

import secrets

from holdfast.simulator.errors import RehearsalError

SEED_VARIABLE = "HOLDFAST_SEED"


def seed_of(given: int | None, variable: str | None) -> int:
    """Return the seed: the flag's, else the variable's, else one drawn now. Raises RehearsalError for no number."""
    if given is not None:
        return given
    if not variable:
        return secrets.randbelow(1_000_000)
    if not variable.isdecimal():
        raise RehearsalError(f"{SEED_VARIABLE} is {variable!r}: it must be a number, as 42")
    return int(variable)
