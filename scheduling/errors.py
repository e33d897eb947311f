"""Refusals of configuration: what was given, what is allowed, and the fix."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing wrong with what the user wrote.

    `field` is the full path (`holdfast:platform.pools[2].capacity`), `value` what stands there as the user would
    recognise it, `allowed` what may stand there, `fix` a sentence that says what to write.
    """

    field: str
    value: str
    allowed: str
    fix: str

    def __str__(self) -> str:
        return f"{self.field}: got {self.value}; allowed: {self.allowed}. {self.fix}"


class ConfigError(Exception):
    """A configuration that cannot be used, with every problem found in it.

    Its text is for the user: one line for a problem, and nothing has been made when it is raised.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
