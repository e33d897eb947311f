"""The resource types of a provider package, read from its installed SDK, and the validation of inputs."""

import ast
import difflib
import importlib.util
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import cast

from pulumi_holdfast.rehearsal.clouds.sdk import (
    Property,
    PropertyType,
    ResourceSchema,
    SdkClass,
    ValueKind,
    argument_properties,
    find_in,
    find_resource,
    output_properties,
)
from pulumi_holdfast.rehearsal.engine.values import Properties, Unknown, Value, strip_secrets
from pulumi_holdfast.rehearsal.errors import RehearsalError

# The extra of this project that installs a package's SDK.
_EXTRAS = {"aws": "aws", "gcp": "gcp", "azure-native": "azure"}
# The table of resources of an SDK: a literal argument of a call in its `__init__`.
_TABLE = re.compile(r'^    resource_modules=(?P<literal>""".*?""")', re.MULTILINE | re.DOTALL)


class UnknownTypeError(RehearsalError):
    """A type token that is not in the installed SDK."""


class Schema:
    """The resource types of one package; lookups are cached."""

    def __init__(self, package: str) -> None:
        self.package = package
        self._root = _sdk_folder(package)
        self.version = metadata.version(f"pulumi-{package}")
        self._classes = dict(_registered_classes(self._root))
        self._known: dict[str, ResourceSchema] = {}
        self._lock = threading.Lock()

    @staticmethod
    @cache
    def for_package(package: str) -> "Schema":
        """Return the schema of a package, such as "aws" or "azure-native".

        Raises RehearsalError where its SDK is not installed.
        """
        return Schema(package)

    @property
    def tokens(self) -> frozenset[str]:
        """The type tokens of all resources."""
        return frozenset(self._classes)

    def resource(self, token: str) -> ResourceSchema:
        """Return the schema of a type such as "aws:s3/bucket:Bucket". Raises UnknownTypeError."""
        with self._lock:
            if token not in self._known:
                self._known[token] = self._look_up(token)
            return self._known[token]

    def _look_up(self, token: str) -> ResourceSchema:
        if token not in self._classes:
            raise UnknownTypeError(self._unknown(token))
        module, name = self._classes[token]
        resource = find_resource(self._root.joinpath(*module.split(".")[1:]), name)
        arguments = _arguments_of(resource) if resource else None
        if resource is None or arguments is None:
            raise RehearsalError(
                f"{token}: no class {name} with its arguments in pulumi-{self.package} {self.version}"
            )
        return ResourceSchema(
            token=token,
            package=self.package,
            version=self.version,
            inputs=argument_properties(arguments),
            outputs=output_properties(resource),
        )

    def _unknown(self, token: str) -> str:
        close = difflib.get_close_matches(token, self._classes, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        return f"pulumi-{self.package} {self.version} has no type {token!r}{hint}"


def _sdk_folder(package: str) -> Path:
    found = importlib.util.find_spec(f"pulumi_{package.replace('-', '_')}")
    if found is None or found.origin is None:
        wanted = f"holdfast[{_EXTRAS[package]}]" if package in _EXTRAS else f"pulumi-{package}"
        raise RehearsalError(
            f"provider {package!r}: its SDK is not installed; install it with `pip install '{wanted}'`"
        )
    return Path(found.origin).parent


def _registered_classes(root: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield token → (module, class)."""
    table = _TABLE.search((root / "__init__.py").read_text(encoding="utf-8"))
    if table is None:
        raise RehearsalError(
            f"{root} registers no resources in the way of Pulumi's SDKs; is another version installed?"
        )
    for module in cast("list[dict[str, object]]", json.loads(ast.literal_eval(table["literal"]))):
        classes = cast("dict[str, str]", module["classes"])
        yield from ((token, (str(module["fqn"]), name)) for token, name in classes.items())


def _arguments_of(resource: SdkClass) -> SdkClass | None:
    """Return the class of a resource's arguments.

    It is `<Class>Args`, or `<Class>InitArgs` where a nested type took that name.
    """
    renamed = find_in(resource.file, f"{resource.name}InitArgs")
    return renamed or find_in(resource.file, f"{resource.name}Args")


@dataclass(frozen=True, kw_only=True)
class Violation:
    """An invalid property: its path, and a reason with the fix."""

    path: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class _Owner:
    """The type whose inputs are judged, and whether an enumeration that is open to other text is judged too."""

    title: str
    judges_open: bool


def violations(inputs: Properties, schema: ResourceSchema, *, judge_open: bool = False) -> list[Violation]:
    """Return the violations of the schema in a resource's inputs; unknown values are valid.

    The values of an enumeration are those that it lists. With `judge_open`, this holds as well where the SDK accepts any
    text, for values of later versions of an API.
    """
    plain = {name: strip_secrets(value) for name, value in inputs.items()}
    title = f"{schema.token} of pulumi-{schema.package} {schema.version}"
    owner = _Owner(title=title, judges_open=judge_open)
    return list(_of_object(plain, schema.inputs, "", owner))


def _of_object(
    given: Mapping[str, Value], expected: Mapping[str, Property], path: str, owner: _Owner
) -> Iterator[Violation]:
    for name, expectation in expected.items():
        if expectation.required and given.get(name) is None:
            yield Violation(
                path=f"{path}{name}", reason=f"missing required property {path}{name!r} ({owner.title})"
            )
    for name, value in given.items():
        if name not in expected:
            yield Violation(path=f"{path}{name}", reason=_no_such(name, expected, path, owner))
        elif value is not None:
            yield from _of_value(value, expected[name].types, f"{path}{name}", owner)


def _no_such(name: str, expected: Mapping[str, Property], path: str, owner: _Owner) -> str:
    close = difflib.get_close_matches(name, expected, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(sorted(expected)) or 'none'}"
    return f"no property {path}{name!r} on {owner.title}; {hint}"


def _of_value(value: Value, types: Sequence[PropertyType], path: str, owner: _Owner) -> Iterator[Violation]:
    """Check a value against the alternatives; the one of its kind validates its content."""
    fitting = [one for one in types if _fits(value, one.kind)]
    if types and not fitting:
        allowed = " or ".join(dict.fromkeys(one.kind.value for one in types))
        yield Violation(
            path=path,
            reason=f"{path} must be {allowed}, not {_kind_of(value).value} ({value!r}) ({owner.title})",
        )
    elif isinstance(value, str) and (values := _listed(fitting, owner)) and value not in values:
        yield Violation(
            path=path, reason=f"{path} must be one of {', '.join(values)}, not {value!r} ({owner.title})"
        )
    elif len(fitting) == 1:
        yield from _inside(value, fitting[0], path, owner)


def _listed(fitting: Sequence[PropertyType], owner: _Owner) -> Sequence[str]:
    """Return the only values of a text; none for any text."""
    is_open = any(not one.values for one in fitting)
    return [value for one in fitting for value in one.values] if owner.judges_open or not is_open else ()


def _inside(value: Value, fitting: PropertyType, path: str, owner: _Owner) -> Iterator[Violation]:
    if isinstance(value, Mapping) and fitting.kind is ValueKind.OBJECT and fitting.shape is not None:
        yield from _of_object(value, argument_properties(fitting.shape), f"{path}.", owner)
    elif isinstance(value, Mapping) and fitting.kind is ValueKind.MAP:
        for key, item in value.items():
            yield from _of_value(item, fitting.item, f"{path}.{key}", owner)
    elif isinstance(value, Sequence) and fitting.kind is ValueKind.LIST:
        for at, item in enumerate(value):
            yield from _of_value(item, fitting.item, f"{path}[{at}]", owner)


def fits(value: Value, types: Sequence[PropertyType]) -> bool:
    """Whether a value has one of these types, as far as its kind says; without types any does."""
    return not types or any(_fits(value, one.kind) for one in types)


def _fits(value: Value, kind: ValueKind) -> bool:
    if value is None or isinstance(value, Unknown) or kind is ValueKind.ANY:
        return True
    actual = _kind_of(value)
    if kind is ValueKind.OBJECT:
        return actual is ValueKind.MAP
    return actual is kind or _converts(value, kind)


def _converts(value: Value, kind: ValueKind) -> bool:
    """Whether a provider converts a scalar to a kind, such as a number to a string."""
    if kind is ValueKind.STRING:
        return isinstance(value, bool | int | float)
    if kind is ValueKind.BOOL:
        return value in ("true", "false")
    return kind is ValueKind.NUMBER and isinstance(value, str) and _is_number(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _kind_of(value: Value) -> ValueKind:
    if isinstance(value, bool):
        return ValueKind.BOOL
    if isinstance(value, int | float):
        return ValueKind.NUMBER
    if isinstance(value, str):
        return ValueKind.STRING
    if isinstance(value, Mapping):
        return ValueKind.MAP
    return ValueKind.LIST if isinstance(value, Sequence) else ValueKind.ANY
