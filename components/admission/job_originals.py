"""CEL, as text: what a job said before admission mended it, as JSON. CEL has no way to write JSON of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.admission.expressions import text

if TYPE_CHECKING:
    from collections.abc import Mapping


def json_object(fields: Mapping[str, str]) -> str:
    """Return an object whose values are expressions for optional JSON; those without a value are left out."""
    pairs = ", ".join(
        f"[{value}].filter(v, v.hasValue()).map(v, {text(f'{text(name)}:')} + v.value())"
        for name, value in fields.items()
    )
    return f'"{{" + [{pairs}].flatten().join(",") + "}}"'


def json_texts(mapping: str) -> str:
    """Return an optional map of texts as optional JSON, its keys in order."""
    pair = 'strings.quote(string(k)) + ":" + strings.quote(string(m[k]))'
    return f'{mapping}.optMap(m, "{{" + m.map(k, string(k)).sort().map(k, {pair}).join(",") + "}}")'


def json_text(value: str) -> str:
    """Return an optional text as optional JSON."""
    return f"{value}.optMap(t, strings.quote(string(t)))"


def json_plain(value: str) -> str:
    """Return an optional number or truth as optional JSON."""
    return f"{value}.optMap(n, string(n))"


def json_of_each(indexes: str, key: str, value: str) -> str:
    """Return an object with a value for each index `i`, under a key that is a text."""
    return f'"{{" + {indexes}.map(i, strings.quote({key}) + ":" + {value}).join(",") + "}}"'
