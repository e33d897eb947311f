"""Reading the fields of an object that may hold anything: a value of the right kind, or none and a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from holdfast.scheduling.durations import ALLOWED, DurationError, parse_duration
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from datetime import timedelta

    from holdfast.scheduling.json import Json, JsonValue

# A value that is quoted in a problem is cut here: what is wrong shows at its beginning.
_QUOTED: Final = 60


class Problems:
    """What has been found wrong so far."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    @property
    def texts(self) -> tuple[str, ...]:
        """Each problem as a line: field, value, what is allowed, the fix."""
        return tuple(str(problem) for problem in self._found)

    def add(self, field: str, value: str, allowed: str, fix: str) -> None:
        """Note one."""
        self._found.append(Problem(field=field, value=value, allowed=allowed, fix=fix))


class Fields:
    """The fields of one object at a path; what is not there is None, what is of a wrong kind None and a problem."""

    def __init__(self, document: Json, path: str, problems: Problems) -> None:
        self._document = document
        self._path = path
        self._problems = problems

    def section(self, name: str) -> Fields:
        """The object under a name; one without fields where there is none."""
        value = self._document.get(name)
        if value is not None and not isinstance(value, Mapping):
            self._wrong(name, value, "an object")
        return Fields(value if isinstance(value, Mapping) else {}, self._at(name), self._problems)

    def sections(self, name: str) -> tuple[Fields, ...]:
        """The objects of a list; none where there is none."""
        items = self._items(name)
        return tuple(
            Fields(item if isinstance(item, Mapping) else {}, f"{self._at(name)}[{place}]", self._problems)
            for place, item in enumerate(items)
        )

    def entries(self, name: str) -> tuple[tuple[str, str], ...]:
        """The texts of an object, by their keys."""
        fields = self.section(name)
        read = ((key, fields.text(key)) for key in fields._document)  # noqa: SLF001  # of its own class
        return tuple((key, text) for key, text in read if text is not None)

    def text(self, name: str) -> str | None:
        """A text."""
        value = self._document.get(name)
        if value is None or isinstance(value, str):
            return value
        return self._wrong(name, value, "a text")

    def choice(self, name: str, allowed: Sequence[str]) -> str | None:
        """One of some texts."""
        value = self._document.get(name)
        if value is None or (isinstance(value, str) and value in allowed):
            return value
        return self._wrong(name, value, " or ".join(allowed))

    def integer(self, name: str, least: int, most: int) -> int | None:
        """A whole number within bounds."""
        value = self._document.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            return self._wrong(name, value, f"a whole number from {least} to {most}")
        return value

    def duration(self, name: str) -> timedelta | None:
        """A duration, as `15m`."""
        value = self._document.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            return self._wrong(name, value, ALLOWED)
        try:
            return parse_duration(value)
        except DurationError as error:
            self._problems.add(self._at(name), _quoted(value), ALLOWED, error.fix)
            return None

    def refuse(self, name: str, allowed: str) -> None:
        """Note that what stands under a name is not what may stand there."""
        self._wrong(name, self._document.get(name), allowed)

    def _items(self, name: str) -> Sequence[JsonValue]:
        value = self._document.get(name)
        if value is None:
            return ()
        if isinstance(value, str) or not isinstance(value, Sequence):
            self._wrong(name, value, "a list")
            return ()
        for place, item in enumerate(value):
            if not isinstance(item, Mapping):
                self._wrong(f"{name}[{place}]", item, "an object")
        return value

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _wrong(self, name: str, value: JsonValue, allowed: str) -> None:
        self._problems.add(self._at(name), _quoted(value), allowed, "Write it so, or leave it out.")


def _quoted(value: JsonValue) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"
