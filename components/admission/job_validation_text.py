"""CEL, as text, that says what Python says: the templates of `scheduling.reachability.words`, filled in by expressions."""

from __future__ import annotations

import json
from string import Formatter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.scheduling.reachability.words import Words


def said(template: str, **values: str) -> str:
    """Return the text of a template; `values` are expressions for texts, each in the place of its name.

    Raises KeyError for a name without an expression.
    """
    parts: list[str] = []
    for literal, name, _, _ in Formatter().parse(template):
        if literal:
            parts.append(json.dumps(literal))
        if name is not None:
            parts.append(f"({values[name]})")
    return f"({' + '.join(parts)})"


def sentence(words: Words, **values: str) -> str:
    """Return a reason with its fix."""
    return said(words.sentence, **values)


def number(value: str) -> str:
    """Return a whole number as text."""
    return f"string({value})"


def amounts(resources: str) -> str:
    """Return amounts as a message names them: of CPU thousandths, of memory MiB, and GPUs."""
    r = resources
    gpus = f'{r}.gpus == 0 ? "" : {r}.gpus == 1 ? "1 GPU, " : string({r}.gpus) + " GPUs, "'
    tenths = f"({r}.memory * 10 / 1024)"
    memory = f'{r}.memory >= 1024 ? {_decimal(tenths, 10)} + " GiB" : string({r}.memory) + " MiB"'
    return f'({gpus}) + {_decimal(f"{r}.cpu", 1000)} + " CPU, " + ({memory})'


def _decimal(parts: str, of: int) -> str:
    return f"({parts} % {of} == 0 ? string({parts} / {of}) : string(double({parts}) / {of}.0))"
