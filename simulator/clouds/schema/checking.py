"""Checks properties against a schema, before anything is created."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.simulator.clouds.schema.annotations import argument_properties
from holdfast.simulator.clouds.schema.types import Kind, Property, PropertyType, ResourceSchema
from holdfast.simulator.pulumi.values import Properties, Unknown, Value, strip_secrets


@dataclass(frozen=True, kw_only=True)
class Violation:
    """What is wrong with one property: its path, and a reason that names the fix."""

    path: str
    reason: str


def violations(inputs: Properties, schema: ResourceSchema) -> list[Violation]:
    """Return what the schema refuses in a resource's inputs; unknown values pass."""
    plain = {name: strip_secrets(value) for name, value in inputs.items()}
    owner = f"{schema.token} of pulumi-{schema.package} {schema.version}"
    return list(_of_object(plain, schema.inputs, "", owner))


def _of_object(
    given: Mapping[str, Value], expected: Mapping[str, Property], path: str, owner: str
) -> Iterator[Violation]:
    for name, expectation in expected.items():
        if expectation.required and given.get(name) is None:
            yield Violation(
                path=f"{path}{name}", reason=f"missing required property {path}{name!r} ({owner})"
            )
    for name, value in given.items():
        if name not in expected:
            yield Violation(path=f"{path}{name}", reason=_no_such(name, expected, path, owner))
        elif value is not None:
            yield from _of_value(value, expected[name].types, f"{path}{name}", owner)


def _no_such(name: str, expected: Mapping[str, Property], path: str, owner: str) -> str:
    close = difflib.get_close_matches(name, expected, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(sorted(expected)) or 'none'}"
    return f"no property {path}{name!r} on {owner}; {hint}"


def _of_value(value: Value, types: Sequence[PropertyType], path: str, owner: str) -> Iterator[Violation]:
    """Check a value against the alternatives: the one of its kind decides what is inside."""
    fitting = [one for one in types if _fits(value, one.kind)]
    if types and not fitting:
        allowed = " or ".join(dict.fromkeys(one.kind.value for one in types))
        yield Violation(
            path=path, reason=f"{path} must be {allowed}, not {_kind_of(value).value} ({value!r}) ({owner})"
        )
    elif len(fitting) == 1:
        yield from _inside(value, fitting[0], path, owner)


def _inside(value: Value, fitting: PropertyType, path: str, owner: str) -> Iterator[Violation]:
    if isinstance(value, Mapping) and fitting.kind is Kind.OBJECT and fitting.shape is not None:
        yield from _of_object(value, argument_properties(fitting.shape), f"{path}.", owner)
    elif isinstance(value, Mapping) and fitting.kind is Kind.MAP:
        for key, item in value.items():
            yield from _of_value(item, fitting.item, f"{path}.{key}", owner)
    elif isinstance(value, Sequence) and fitting.kind is Kind.LIST:
        for at, item in enumerate(value):
            yield from _of_value(item, fitting.item, f"{path}[{at}]", owner)


def _fits(value: Value, kind: Kind) -> bool:
    if value is None or isinstance(value, Unknown) or kind is Kind.ANY:
        return True
    actual = _kind_of(value)
    if kind is Kind.OBJECT:
        return actual is Kind.MAP
    return actual is kind or _converts(value, kind)


def _converts(value: Value, kind: Kind) -> bool:
    """Providers convert between scalars, so a number where text is wanted is no mistake."""
    if kind is Kind.STRING:
        return isinstance(value, bool | int | float)
    if kind is Kind.BOOL:
        return value in ("true", "false")
    return kind is Kind.NUMBER and isinstance(value, str) and _is_number(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _kind_of(value: Value) -> Kind:
    if isinstance(value, bool):
        return Kind.BOOL
    if isinstance(value, int | float):
        return Kind.NUMBER
    if isinstance(value, str):
        return Kind.STRING
    if isinstance(value, Mapping):
        return Kind.MAP
    return Kind.LIST if isinstance(value, Sequence) else Kind.ANY
