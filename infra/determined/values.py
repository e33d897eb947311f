"""Reads single values of Determined's pools, and reports what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from holdfast.infra.determined.report import Report
    from holdfast.scheduling.json import Json, JsonValue


@dataclass(frozen=True, kw_only=True)
class Values:
    """A mapping of Determined's at a path. Each reading of a value that is wrong adds a problem to the report."""

    content: Json
    at: str
    report: Report

    def text(self, key: str, default: str | None = None) -> str | None:
        """A text; the default where it is left out, None where it is none or empty."""
        value = self.content.get(key, default)
        if isinstance(value, str) and value:
            return value
        self.refuse(key, "a text", f"Write `{key}: …`, as Determined needs it too.")
        return None

    def integer(self, key: str, default: int, *, least: int, most: int) -> int:
        """A whole number from `least` to `most`; the default where it is left out or wrong."""
        value = self.content.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.refuse(
            key, f"a whole number, {least} to {most}", f"Write, for example, `{key}: {max(least, 1)}`."
        )
        return default

    def truth(self, key: str, *, default: bool) -> bool:
        """True or false; the default where it is left out or neither."""
        value = self.content.get(key, default)
        if isinstance(value, bool):
            return value
        self.refuse(key, "true or false", f"Write `{key}: true` or `{key}: false`.")
        return default

    def refuse(self, key: str, allowed: str, fix: str) -> None:
        """Report that a value cannot stand as it is."""
        value: JsonValue = self.content.get(key)
        self.report.problems.append(
            Problem(
                field=f"{self.at}.{key}",
                value=shown(value) if key in self.content else "nothing",
                allowed=allowed,
                fix=fix,
            )
        )

    def refuse_others(self, known: Collection[str], refused: Mapping[str, tuple[str, str]]) -> None:
        """Report each field that has no equivalent, or that Determined does not know either."""
        for key in self.content.keys() - known:
            close = get_close_matches(key, known, n=1)
            unknown = (
                f"a field that Determined has here: {', '.join(sorted({*known, *refused}))}",
                f'Write "{close[0]}".' if close else "Remove it, if nothing rests on it.",
            )
            self.refuse(key, *refused.get(key, unknown))
