"""Parses the annotations of generated classes: names, brackets and commas, nothing more.

Not by `ast`: a traceback that another thread formats at the same time parses too, and two parsers at once make
Python 3.11 raise "AST constructor recursion depth mismatch".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(r"[\w.]+|\[|\]|,")


@dataclass(frozen=True, kw_only=True)
class Hint:
    """A name, such as `Optional` or `outputs.ClusterVpcConfig`, with what stands in its brackets."""

    name: str
    arguments: tuple["Hint", ...] = ()

    @property
    def last(self) -> str:
        """The name without the modules before it."""
        return self.name.rpartition(".")[2]


def parse_hint(text: str) -> Hint:
    """Return an annotation as a tree; quotes around names make no difference."""
    (hint,) = _parse_list(_tokens(text))
    return hint


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)[::-1]


def _parse_list(tokens: list[str]) -> tuple[Hint, ...]:
    """Parse hints up to the closing bracket or the end; `tokens` are taken from its end."""
    return tuple(_parse_each(tokens))


def _parse_each(tokens: list[str]) -> Iterator[Hint]:
    while tokens:
        token = tokens.pop()
        if token == "]":  # noqa: S105 - a bracket, not a password
            return
        if token != ",":  # noqa: S105 - nor is a comma one
            has_arguments = bool(tokens) and tokens[-1] == "["
            if has_arguments:
                tokens.pop()
            yield Hint(name=token, arguments=_parse_list(tokens) if has_arguments else ())
