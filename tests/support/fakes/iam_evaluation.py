"""Evaluates a request against IAM documents, as far as the components' documents need it.

An explicit denial wins; otherwise one allowing statement is enough. An unknown operator or element fails the
test instead of counting as a match.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pulumi_holdfast.ladder.json import Json, JsonValue
from tests.support.fakes.pulumi_engine import Recorded
from tests.support.json_objects import obj, objects


def documents_of(resource: Recorded) -> Iterator[tuple[str, str]]:
    """Each IAM document of a resource, with the resource's name and the input that holds it."""
    for path, text in _texts(resource.inputs, ()):
        if _is_document(text):
            yield f"{resource.name}:{'.'.join(path)}", text


def _texts(value: JsonValue, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(one, (*path, key))
    elif isinstance(value, Sequence):
        for index, one in enumerate(value):
            yield from _texts(one, (*path, str(index)))


def _is_document(text: str) -> bool:
    if "Statement" not in text:
        return False
    try:
        return "Statement" in json.loads(text)
    except ValueError:
        return False


_ELEMENTS = {"Sid", "Effect", "Action", "Resource", "Condition", "Principal"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request: `ec2:RunInstances` on one ARN.

    `context` holds its condition keys with one value or several. `service` is the calling AWS service, for
    documents with principals.
    """

    action: str
    resource: str = "*"
    context: Mapping[str, str | Sequence[str]] = field(default_factory=dict[str, "str | Sequence[str]"])
    service: str | None = None


def is_allowed(documents: Iterable[str], request: Request) -> bool:
    """Whether the documents together allow a request."""
    statements = [one for document in documents for one in objects(obj(json.loads(document))["Statement"])]
    effects = {str(one["Effect"]) for one in statements if _applies(one, request)}
    return "Allow" in effects and "Deny" not in effects


def is_denied(documents: Iterable[str], request: Request) -> bool:
    """Whether a statement denies a request."""
    statements = [one for document in documents for one in objects(obj(json.loads(document))["Statement"])]
    return any(one["Effect"] == "Deny" and _applies(one, request) for one in statements)


def texts(value: JsonValue) -> list[str]:
    """One string or a list of them, as a list; AWS treats a boolean as a string."""
    values = value if isinstance(value, list) else [value]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in values]


def matches(pattern: str, value: str) -> bool:
    """Whether a value matches a pattern with `*` and `?`."""
    translated = "".join(".*" if one == "*" else "." if one == "?" else re.escape(one) for one in pattern)
    return re.fullmatch(translated, value, re.DOTALL) is not None


def _applies(statement: Json, request: Request) -> bool:
    unknown = set(statement) - _ELEMENTS
    assert not unknown, f"{unknown} of a statement is not evaluated here"
    actions = texts(statement["Action"])
    return (
        any(matches(action.lower(), request.action.lower()) for action in actions)
        # A trust policy has no resource.
        and any(matches(one, request.resource) for one in texts(statement.get("Resource", "*")))
        and _is_principal(statement.get("Principal"), request.service)
        and all(
            _holds(operator, key, texts(wanted), request.context)
            for operator, keys in obj(statement.get("Condition")).items()
            for key, wanted in obj(keys).items()
        )
    )


def _is_principal(principal: JsonValue, service: str | None) -> bool:
    if principal is None or principal == "*":
        return True
    return service in texts(obj(principal).get("Service", []))


def _holds(
    operator: str, key: str, wanted: Sequence[str], context: Mapping[str, str | Sequence[str]]
) -> bool:
    found = next((value for name, value in context.items() if name.lower() == key.lower()), None)
    given = None if found is None else [found] if isinstance(found, str) else list(found)
    if operator == "Null":
        return (given is None) == (wanted == ["true"])
    if operator.startswith("ForAllValues:"):
        return all(_one_fits(operator.partition(":")[2], wanted, value) for value in given or [])
    if operator.endswith("IfExists"):
        return given is None or _holds(operator.removesuffix("IfExists"), key, wanted, context)
    return given is not None and any(_one_fits(operator, wanted, value) for value in given)


def _one_fits(operator: str, wanted: Sequence[str], value: str) -> bool:
    return any(_OPERATORS[operator](one, value) for one in wanted)


def _equals(wanted: str, value: str) -> bool:
    return wanted == value


_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": _equals,
    "Bool": _equals,
    "StringLike": matches,
    "ArnEquals": matches,
    "ArnLike": matches,
}
