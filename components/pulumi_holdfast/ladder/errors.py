"""Errors of configuration: the field, its value, the allowed values, and the fix."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One invalid field of a configuration.

    `field` is the full path (`holdfast:platform.pools[2].capacity`), `value` its value as the user wrote it, `allowed` the
    allowed values, `fix` an imperative sentence.
    """

    field: str
    value: str
    allowed: str
    fix: str

    def __str__(self) -> str:
        return f"{self.field}: got {self.value}; allowed: {self.allowed}. {self.fix}"


class ConfigError(Exception):
    """An invalid configuration, with every problem in it; raised before anything is created.

    Its text is for the user, one line for each problem.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @classmethod
    def of(cls, *, field: str, value: str, allowed: str, fix: str) -> "ConfigError":
        """An invalid configuration with this one problem."""
        return cls([Problem(field=field, value=value, allowed=allowed, fix=fix)])
