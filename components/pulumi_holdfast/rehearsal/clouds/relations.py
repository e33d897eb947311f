"""Relations between the objects of a cloud, as rules: what an object needs, what keeps another one, what exists once.

A message may contain `{id}` and `{name}` of the object, `{inputs[…]}`, `{value}` (a reference) and `{user}` (the id of an
object that refers to it).
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.clouds.catalogue import (
    Call,
    Deletion,
    Invoke,
    Refuse,
    RefuseDeletion,
    ResourceRequest,
)
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.errors import RehearsalError


def texts(values: Json, path: str) -> tuple[str, ...]:
    """Return the strings at a path of an object (`vpcConfig.subnetIds`), also in each object of a list."""
    return tuple(_texts(values, path.split(".") if path else []))


def text(values: Json, path: str) -> str:
    """Return the first string at a path, "" for none."""
    return next(iter(texts(values, path)), "")


def _texts(value: JsonValue, steps: Sequence[str]) -> Iterator[str]:
    if isinstance(value, str):
        if value and not steps:
            yield value
    elif isinstance(value, Mapping):
        if steps:
            yield from _texts(value.get(steps[0]), steps[1:])
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each, steps)


def same_id(one: object, other: object) -> bool:
    """Whether two references name one object: Azure ignores case, and Google accepts a path and a link."""
    return _folded(one) == _folded(other)


def _folded(reference: object) -> str:
    folded = str(reference).lower()
    return folded.partition("/compute/v1/")[2] or folded


def find(
    inventory: Inventory, types: str | Sequence[str], value: object, *, by: str = "id"
) -> CloudObject | None:
    """Return the object of a type whose id, or output `by`, has a value."""
    for token in [types] if isinstance(types, str) else types:
        for one in inventory.of_type(token):
            if same_id(one.id if by == "id" else one.outputs.get(by), value):
                return one
    return None


def owned(inventory: Inventory, token: str, **inputs: JsonValue) -> list[CloudObject]:
    """Return the objects of a type with these inputs."""
    return [one for one in inventory.of_type(token) if inputs.items() <= one.inputs.items()]


def needs(
    path: str,
    types: str | Sequence[str],
    message: str,
    *,
    by: str = "id",
    only: Callable[[ResourceRequest, str], bool] = lambda _request, _value: True,
) -> Refuse:
    """Refuse an object whose input names one that does not exist; `only` says for which values this is known."""

    def refuse(request: ResourceRequest) -> str | None:
        for value in texts(request.inputs, path):
            if only(request, value) and find(request.inventory, types, value, by=by) is None:
                return said(message, request.id, request.name, request.inputs, value=value)
        return None

    return refuse


def needs_at(types: str, where: Callable[[ResourceRequest], str], message: str) -> Refuse:
    """Refuse an object without its parent, whose id is computed; the id is `{value}`."""

    def refuse(request: ResourceRequest) -> str | None:
        parent = where(request)
        if find(request.inventory, types, parent) is not None:
            return None
        return said(message, request.id, request.name, request.inputs, value=parent)

    return refuse


def once(message: str, *paths: str) -> Refuse:
    """Refuse an object if another one of its type has the same values at all paths, of which one is set."""

    def refuse(request: ResourceRequest) -> str | None:
        asked = _values(request.inputs, paths)
        for one in request.inventory.of_type(request.type) if any(asked) else ():
            if one.id != request.id and _values(one.inputs, paths) == asked:
                return said(message, request.id, request.name, request.inputs, user=one.id)
        return None

    return refuse


def _values(inputs: Json, paths: Sequence[str]) -> list[object]:
    return [[*map(_folded, texts(inputs, path))] or inputs.get(path) for path in paths]


def kept_by(
    message: str, *users: tuple[str, str], by: str = "id", unless: str = "", apart: str = ""
) -> RefuseDeletion:
    """Refuse to delete an object that objects of these (type, input path) pairs name by its id or its output `by`.

    `unless` is the input that allows it; a user whose input `apart` names the object goes with it.
    """

    def refuse(deletion: Deletion) -> str | None:
        target = deletion.target
        value = target.id if by == "id" else target.outputs.get(by)
        if unless and target.inputs.get(unless) is True:
            return None
        for token, path in users:
            for one in deletion.inventory.of_type(token):
                names = any(same_id(each, value) for each in texts(one.inputs, path))
                if names and not (apart and same_id(one.inputs.get(apart), value)):
                    return said(
                        message, target.id, str(target.outputs.get("name") or ""), target.inputs, user=one.id
                    )
        return None

    return refuse


def said(message: str, object_id: str, name: str, inputs: Json, *, value: str = "", user: str = "") -> str:
    """Return a message with its values."""
    name = name or object_id.rpartition("/")[2]
    return message.format(id=object_id, name=name, inputs=defaultdict(str, inputs), value=value, user=user)


def only_real(what: str) -> Invoke:
    """Return the function for what only a real account knows; `what` may contain `{arguments[…]}`."""

    def refuse(call: Call) -> Json:
        known = what.format(arguments=defaultdict(str, call.arguments))
        raise RehearsalError(f"{known} not simulated; only a real account knows them")

    return refuse
