"""What a check finds that does not pass: a failure, or a value that is not known."""

from dataclasses import dataclass
from typing import TypeAlias

from pulumi_holdfast.ladder.reachability import messages


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A check that fails: why the job's pods cannot run on the pool's nodes, and the fix."""

    check: str
    reason: str
    fix: str = ""

    @classmethod
    def by(cls, check: str, template: messages.MessageTemplate, **values: object) -> "Failed":
        """A failed check with the message of this template."""
        return cls(check=check, reason=template.reason.format(**values), fix=template.fix.format(**values))


@dataclass(frozen=True, kw_only=True)
class Undetermined:
    """A check that depends on a value which is not known yet."""

    check: str
    reason: str


#: What a check yields; a check that passes yields nothing.
CheckResult: TypeAlias = Failed | Undetermined
