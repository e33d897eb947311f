"""What a change of inputs means for an object, as the engine reads it."""

from collections.abc import Mapping

from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_provider.inputs import READ_ONLY_METADATA
from holdfast.simulator.kubernetes_provider.properties import fields
from holdfast.simulator.kubernetes_provider.replacing import (
    IDENTITY,
    immutable_paths,
    must_go_first,
    replaces,
)
from holdfast.simulator.kubernetes_provider.settings import Settings
from holdfast.simulator.pulumi.diff_answers import diff_response
from holdfast.simulator.pulumi.diffing import changes
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret, Unknown, Value


def object_diff(
    old: Properties, new: Properties, *, settings: Settings, patches: bool = False
) -> provider_pb2.DiffResponse:
    """Compare an object's last-applied inputs with its new ones.

    `patches`: it is a patch of somebody else's object, of which only the identity is fixed.
    """
    before, after = _known_part(old), _known_part(new)
    immutable = IDENTITY if patches else immutable_paths(after, settings)
    found = changes(_comparable(old), _comparable(new))
    replacing = [change for change in found if replaces(change, immutable)]
    return diff_response(found, replacing=replacing, deletes_first=must_go_first(before, after))


def _comparable(inputs: Properties) -> Properties:
    metadata = inputs.get("metadata")
    if not isinstance(metadata, Mapping):
        return inputs
    # The namespace may be left out or be called by its name; what the server writes is nobody's wish.
    kept = {name: value for name, value in metadata.items() if name not in READ_ONLY_METADATA}
    return {**inputs, "metadata": {**kept, "namespace": metadata.get("namespace") or "default"}}


def _known_part(inputs: Properties) -> Json:
    """Return what decides about replacement: the identity, and whether the object is immutable."""
    metadata = fields(inputs, "metadata")
    annotations = fields(metadata, "annotations")
    return {
        "apiVersion": _known(inputs.get("apiVersion")),
        "kind": _known(inputs.get("kind")),
        "immutable": _known(inputs.get("immutable")),
        "metadata": {
            "name": _known(metadata.get("name")),
            "namespace": _known(metadata.get("namespace")),
            "annotations": {name: _known(value) for name, value in annotations.items()},
        },
    }


def _known(value: Value) -> JsonValue:
    if isinstance(value, Secret):
        return _known(value.value)
    if isinstance(value, Unknown):
        return repr(UNKNOWN)
    return value if isinstance(value, str | bool | int | float) else None
