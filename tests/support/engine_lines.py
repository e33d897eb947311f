"""The order of an engine's steps, by the lines in which it tells them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_STEP = re.compile(r"^ - +(\S+ \S+) (deleting|deleted)\b")


@dataclass(frozen=True, kw_only=True)
class Deletions:
    """When each resource's deletion began and when it was done: places in the log, by `type name`."""

    began: dict[str, int] = field(default_factory=dict[str, int])
    done: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def told_in(cls, stdout: str) -> Deletions:
        """Read what the engine told of a destroy."""
        found = cls()
        for place, line in enumerate(stdout.splitlines()):
            step = _STEP.match(line)
            if step:
                at = found.began if step[2] == "deleting" else found.done
                at.setdefault(step[1], place)
        return found

    def matching(self, pattern: str) -> Sequence[str]:
        """The deleted resources of a pattern: the end of a type and the begin of a name, or the begin of a type."""
        kind, _, name = pattern.partition(" ")
        return [one for one in self.done if self._is(one, kind, name)]

    def too_early(self, first: Sequence[str], then: Sequence[str]) -> Sequence[str]:
        """What of `then` began to go before all of `first` was gone."""
        last = max(self.done[one] for one in first)
        return [one for one in then if self.began[one] < last]

    @staticmethod
    def _is(resource: str, kind: str, name: str) -> bool:
        type_token, _, own = resource.partition(" ")
        fits = type_token.endswith(kind) if kind.startswith(":") else type_token == kind
        return own.startswith(name) and (fits or (kind.endswith(":") and type_token.startswith(kind)))
