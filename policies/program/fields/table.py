"""A table of the fields of a resource type: those that rules read, harmless ones, and those that no rule judges.

If a program sets any other field, what depends on the field is not judged, and the report names the field. Paths are written
as a tree, with lists as transparent: `spec(limits(cpu memory) replicas)`. A leaf stands for all that is below it, except
what another path names. `name=value|other` is a field with these values only, `name@table` one with the fields of another
table, and `*` stands for any text in a name or a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from fnmatch import fnmatchcase
from typing import Final

from holdfast.policies.program.resources import Value, is_list, is_object
from holdfast.scheduling.json import UNKNOWN

_WORDS: Final = re.compile(r"[()]|[^()\s]+")
#: Where bridged providers list the fields of an object that the program leaves to their defaults.
_DEFAULTS: Final = "__defaults"


class Standing(Enum):
    """How the rules treat a field."""

    JUDGED = auto()  #: a rule reads it
    HARMLESS = auto()  #: it keeps no job from running
    UNJUDGED = auto()  #: it may keep a job from running, and no rule reads it


@dataclass(kw_only=True)
class Node:
    """A field of a table, and the fields below it. `standing` is None where only those have one."""

    standing: Standing | None = None
    values: frozenset[str] = frozenset()
    below: dict[str, Node] = field(default_factory=dict[str, "Node"])

    def child(self, name: str) -> Node:
        """Return the node of the field with this name below it."""
        found = self.below.get(name)
        if found is None:
            pattern = next((each for each in self.below if "*" in each and fnmatchcase(name, each)), None)
            found = self.below[pattern] if pattern is not None else Node(standing=self.standing)
        return found

    def takes(self, value: Value) -> bool:
        """Whether a value of it is read by a rule, or harmless."""
        if self.standing not in (Standing.JUDGED, Standing.HARMLESS):
            return False
        return not self.values or any(fnmatchcase(_text(value), each) for each in self.values)


@dataclass(frozen=True, kw_only=True)
class Fields:
    """The fields of one type. `harmless` is by the reason why they keep no job from running."""

    root: Node

    @classmethod
    def of(
        cls,
        *,
        judged: str = "",
        harmless: Mapping[str, str] | None = None,
        unjudged: str = "",
        tables: Mapping[str, Fields] | None = None,
    ) -> Fields:
        """Return a table. Raises ValueError for a path that it has twice."""
        root = Node()
        for standing, texts in (
            (Standing.JUDGED, [judged]),
            (Standing.HARMLESS, [*(harmless or {}).values()]),
            (Standing.UNJUDGED, [unjudged]),
        ):
            for text in texts:
                _add(root, text, standing, tables or {})
        return cls(root=root)

    def unread(self, value: Value, who: str) -> tuple[str, ...]:
        """Return that fields which `who`, of this type, sets are not judged; those that are not known yet apart."""
        found = dict(_unread(value, self.root, ""))
        unknown = [path for path, each in found.items() if each is UNKNOWN]
        known = [path for path in found if path not in unknown]
        return (
            *(
                (f"{_listed(known)} of {who} {'is' if len(known) == 1 else 'are'} not judged",)
                if known
                else ()
            ),
            *(
                (f"{_listed(unknown)} of {who} {'is' if len(unknown) == 1 else 'are'} not known yet",)
                if unknown
                else ()
            ),
        )


def _add(root: Node, text: str, standing: Standing, tables: Mapping[str, Fields]) -> None:
    """Add the paths of a text to a tree."""
    above, last = [root], root
    words = _WORDS.findall(text)
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == "(":
            above.append(last)
        elif word == ")":
            above.pop()
        else:
            name, equals, values = word.partition("=")
            name, _, table = (name, "", "") if equals else word.partition("@")
            last = above[-1].below.setdefault(name, Node())
            if table:
                above[-1].below[name] = tables[table].root
            elif following != "(":
                if last.standing is not None:
                    raise ValueError(f"the table has {name!r} twice: {text}")
                last.standing = standing
                last.values = frozenset(each.lower() for each in values.split("|") if equals)


def _unread(value: Value, node: Node, path: str) -> Iterator[tuple[str, Value]]:
    if value is None or value in ("", [], {}) or (not node.below and node.takes(value)):
        return
    if is_list(value):
        for each in value:
            yield from _unread(each, node, path)
    elif is_object(value) and node.below:
        defaults = value.get(_DEFAULTS)
        for name, each in value.items():
            if not name.startswith("__") and not (is_list(defaults) and name in defaults):
                yield from _unread(each, node.child(name), f"{path}.{name}" if path else name)
    elif not node.takes(value) or value is UNKNOWN:
        yield path, value


def _text(value: Value) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).lower()


def _listed(paths: Sequence[str]) -> str:
    """Return paths as a message names them."""
    return f"the field{'s' if len(paths) > 1 else ''} {', '.join(f'`{each}`' for each in paths)}"
