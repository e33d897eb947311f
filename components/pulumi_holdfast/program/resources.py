"""The resources of a stack as the rules read them.

`server` turns what Pulumi's engine sends into these. A value that only the update will know is UNKNOWN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import wraps
from math import isfinite
from typing import Concatenate, Final, Literal, ParamSpec, TypeAlias, TypeGuard, TypeVar, cast

from pulumi_holdfast.ladder.json import UNKNOWN, Json, JsonValue, Unknown, mapping
from pulumi_holdfast.ladder.quantities import parse_quantity

Value: TypeAlias = bool | int | float | str | Unknown | Sequence["Value"] | Mapping[str, "Value"] | None
Found = TypeVar("Found")
Given = ParamSpec("Given")

_AMOUNT: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:m|k|[MGTP]|[KMGTP]i)?")
_MIB: Final = 1024**2
_MAKES_OBJECTS: Final = re.compile(
    r"kubernetes:(yaml(/v2)?:Config(File|Group)|kustomize(/v2)?:Directory|helm\.sh/v[34]:Chart)"
)
_KUBERNETES: Final = "pulumi:providers:kubernetes"
RELEASE: Final = "kubernetes:helm.sh/v3:Release"
NAMESPACE_TYPE: Final = "kubernetes:core/v1:Namespace"
#: A patch that labels an existing namespace makes it a training namespace, too.
NAMESPACE_TYPES: Final = frozenset({NAMESPACE_TYPE, f"{NAMESPACE_TYPE}Patch"})


@dataclass(frozen=True, kw_only=True)
class StackResource:
    """One resource of a stack: its type token, its URN and its properties.

    `is_protected`: the engine refuses to delete it. `parent` is the URN of its parent, `provider` that of its provider; both
    are empty for none. `refers_to` maps a property to the URNs of the resources that its value is made from: known on
    preview, when the value is not. `inputs` are the
    properties that the program sets, None if they are not told apart from those that its provider adds.
    """

    type: str
    urn: str
    props: Mapping[str, Value]
    is_protected: bool = False
    parent: str = ""
    provider: str = ""
    refers_to: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    inputs: Mapping[str, Value] | None = None

    @property
    def declared(self) -> Mapping[str, Value]:
        """What the program sets of it."""
        return self.props if self.inputs is None else self.inputs

    @property
    def logical_name(self) -> str:
        """The name that the program gave the resource: the last part of its URN."""
        return self.urn.rpartition("::")[2]

    @property
    def stack(self) -> str:
        """The name of its stack: the third part of its URN."""
        return self.urn.split(":")[2] if self.urn.count(":") > 2 else ""


class Stack(tuple[StackResource, ...]):
    """The resources of one run, with a cache of what is computed `once` from them."""

    def __new__(cls, resources: Iterable[StackResource] = ()) -> Stack:
        """Start with an empty cache."""
        made = super().__new__(cls, resources)
        made._found = {}
        return made

    _found: dict[object, object]

    def once(self, key: object, work: Callable[[], Found]) -> Found:
        """Return the result of a computation, which runs the first time only for its key."""
        if key not in self._found:
            self._found[key] = work()
        return cast("Found", self._found[key])


def once(
    work: Callable[Concatenate[Sequence[StackResource], Given], Found],
) -> Callable[Concatenate[Sequence[StackResource], Given], Found]:
    """Compute a function of all resources once for each `Stack`, and every time for any other sequence.

    What it receives beside the resources is hashable, and is given by position: it computes once for each. Most rules read
    all pools, and many compare the clusters of ladders and pools; with 5,000 resources that was most of their time.
    """

    @wraps(work)
    def cached(resources: Sequence[StackResource], *given: Given.args, **named: Given.kwargs) -> Found:
        if isinstance(resources, Stack) and not named:
            return resources.once((work, *given), lambda: work(resources, *given, **named))
        return work(resources, *given, **named)

    return cached


def is_fallback_policy(type_token: str) -> bool:
    """Whether the type is a FallbackPolicy of any API version."""
    return type_token.startswith("kubernetes:holdfast.dev/") and type_token.endswith(":FallbackPolicy")


@once
def pools_on_ladders(resources: Sequence[StackResource]) -> frozenset[str]:
    """Return the names of the pools that the stack's FallbackPolicies name for their own cluster."""
    tiers = (
        tier
        for each in resources
        if is_fallback_policy(each.type)
        for tier in known_items(each.props, "spec", "tiers")
        if not at(tier, "cluster")
    )
    return frozenset(name for tier in tiers if isinstance(name := at(tier, "pool"), str))


@once
def of_type(resources: Sequence[StackResource], type_token: str) -> tuple[StackResource, ...]:
    """Return the resources of a type."""
    return tuple(each for each in resources if each.type == type_token)


@once
def of_types(resources: Sequence[StackResource], pattern: re.Pattern[str]) -> tuple[StackResource, ...]:
    """Return the resources whose type matches a pattern, all of it."""
    return tuple(each for each in resources if pattern.fullmatch(each.type))


def chart_of(release: StackResource) -> str:
    """Return the name of the chart of a Helm release, without its repository."""
    return str(at(release.props, "chart")).rpartition("/")[2]


def named(
    resources: Sequence[StackResource], type_token: str, name: str | Unknown | None
) -> Sequence[StackResource]:
    """Return the objects of a Kubernetes type with this name, in any namespace of any cluster."""
    return _by_name(resources, type_token).get(name, ())


@once
def _by_name(
    resources: Sequence[StackResource], type_token: str
) -> Mapping[str | Unknown | None, Sequence[StackResource]]:
    found: dict[str | Unknown | None, list[StackResource]] = {}
    for each in of_type(resources, type_token):
        found.setdefault(text_at(each.props, "metadata", "name"), []).append(each)
    return found


@once
def by_urn(resources: Sequence[StackResource]) -> Mapping[str, StackResource]:
    """Return the resources by URN."""
    return {each.urn: each for each in resources}


@once
def unshown_components(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    """Return the components whose objects this preview does not show.

    The engine does not construct a ConfigGroup, ConfigFile, Directory or Chart while the configuration of its provider is unknown.
    """
    unknown = (UNKNOWN in each.props.values() for each in resources if each.type == _KUBERNETES)
    if not any(unknown):
        return ()
    parents = {each.parent for each in resources}
    return tuple(
        each for each in resources if _MAKES_OBJECTS.fullmatch(each.type) and each.urn not in parents
    )


def is_object(value: Value) -> TypeGuard[Mapping[str, Value]]:
    """Whether the value is a mapping of property names to values."""
    # The engine's values are dicts, and most others texts: checking for these first takes a tenth of the time.
    return isinstance(value, dict) or (not isinstance(value, str) and isinstance(value, Mapping))


def is_list(value: Value) -> TypeGuard[Sequence[Value]]:
    """Whether the value is a list; a text is not."""
    return isinstance(value, list) or (not isinstance(value, str) and isinstance(value, Sequence))


def at(value: Value, *path: str) -> Value:
    """Return the value at `path`: UNKNOWN if any step is UNKNOWN, None if the path does not exist."""
    for step in path:
        if value is UNKNOWN:
            return UNKNOWN
        if not is_object(value):
            return None
        value = value.get(step)
    return value


def known_object(value: Value) -> Json | Unknown:
    """Return an object all of whose values are known, empty for anything else; UNKNOWN if one is not known."""
    found = _known(value)
    return found if found is UNKNOWN else mapping(found)


def _known(value: Value) -> JsonValue | Unknown:
    if is_object(value):
        found = {key: _known(each) for key, each in value.items()}
        return UNKNOWN if UNKNOWN in found.values() else cast("Json", found)
    if is_list(value):
        items = [_known(each) for each in value]
        return UNKNOWN if UNKNOWN in items else cast("JsonValue", items)
    return cast("JsonValue | Unknown", value)


def items_at(value: Value, *path: str) -> Sequence[Value] | Unknown:
    """Return the list at `path`; empty if there is none."""
    found = at(value, *path)
    if found is UNKNOWN:
        return UNKNOWN
    return found if is_list(found) else ()


def known_items(value: Value, *path: str) -> Sequence[Value]:
    """Return the list at `path`; empty if there is none, or if it is not known."""
    found = items_at(value, *path)
    return () if found is UNKNOWN else found


def text_at(value: Value, *path: str) -> str | Unknown | None:
    """Return the text at `path`; None if there is none."""
    found = at(value, *path)
    return found if found is UNKNOWN or isinstance(found, str) else None


def texts_at(value: Value, *path: str) -> frozenset[str] | Unknown | None:
    """Return the texts of the list at `path`; UNKNOWN if one of them is, None if there is no list."""
    listed = at(value, *path)
    if listed is UNKNOWN or (is_list(listed) and UNKNOWN in listed):
        return UNKNOWN
    return frozenset(each for each in listed if isinstance(each, str)) if is_list(listed) else None


def labels_at(value: Value, *path: str) -> Mapping[str, str | Unknown] | Unknown:
    """Return the labels of the object at `path`; UNKNOWN if not even their keys are known."""
    declared = at(value, *path)
    if declared is UNKNOWN:
        return UNKNOWN
    if not is_object(declared):
        return {}
    return {key: label for key, label in declared.items() if isinstance(label, str) or label is UNKNOWN}


def whole_number(value: Value) -> int | Literal[Unknown.UNKNOWN] | None:
    """Return the value as an integer; the engine sends only floats, so 5.0 is 5."""
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if float(value).is_integer() else None


def amount(value: Value) -> Fraction | Unknown | None:
    """Return a Kubernetes quantity (`96`, `500m`, `1152Gi`) in its base unit; None if it is not one."""
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Through the text: the float for 0.57 is slightly less than 0.57.
        return Fraction(str(value)) if isfinite(value) else None
    if isinstance(value, str) and _AMOUNT.fullmatch(value):
        return parse_quantity(value)
    return None


def count(value: Value) -> int | Unknown | None:
    """Return a quantity as a number of pieces."""
    return _scaled(value, 1)


def cpu_millis(value: Value) -> int | Unknown | None:
    """Return a quantity of CPUs as millicores."""
    return _scaled(value, 1000)


def memory_mib(value: Value) -> int | Unknown | None:
    """Return a quantity of bytes as MiB."""
    return _scaled(value, Fraction(1, _MIB))


def _scaled(value: Value, factor: int | Fraction) -> int | Unknown | None:
    found = amount(value)
    return int(found * factor) if isinstance(found, Fraction) else found
