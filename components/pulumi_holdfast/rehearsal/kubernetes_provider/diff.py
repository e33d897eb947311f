"""Compares inputs: which changes update an object, which replace it, and which fields drifted.

Pure; `objects.py` calls it for diff and read.
"""

import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import cast

from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.engine.diff import PropertyChange, changes, diff_response
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Secret, Unknown, Value
from pulumi_holdfast.rehearsal.kubernetes_provider.inputs import READ_ONLY_METADATA, fields
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import AUTONAMED, ProviderSettings, annotation


def object_diff(
    old: Properties, new: Properties, *, settings: ProviderSettings, patches: bool = False
) -> provider_pb2.DiffResponse:
    """Compare the last-applied inputs of an object with its new inputs.

    With `patches`, the resource is a patch of an existing object, and only a change of its identity replaces it.
    """
    before, after = _known_part(old), _known_part(new)
    immutable = IDENTITY if patches else immutable_paths(after, settings)
    found = changes(_comparable(old), _comparable(new))
    replacing = [change for change in found if replaces(change, immutable)]
    return diff_response(found, replacing=replacing, deletes_first=delete_before_replace(before, after))


def _comparable(inputs: Properties) -> Properties:
    metadata = inputs.get("metadata")
    if not isinstance(metadata, Mapping):
        return inputs
    # A missing namespace equals "default", and fields that the server writes are not inputs.
    settable = {name: value for name, value in metadata.items() if name not in READ_ONLY_METADATA}
    return {**inputs, "metadata": {**settable, "namespace": metadata.get("namespace") or "default"}}


def _known_part(inputs: Properties) -> Json:
    """Return the fields that decide about a replacement: the identity, and whether the object is immutable."""
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


IDENTITY = ("metadata.name", "metadata.namespace")
_IMMUTABLE = cast(
    "Mapping[str, Sequence[str]]",
    json.loads(
        resources.files("pulumi_holdfast.rehearsal.kubernetes_provider")
        .joinpath("immutable.json")
        .read_text(encoding="utf-8")
    ),
)
_LIST_INDEX = re.compile(r"\[\d+\]")


def immutable_paths(obj: Json, settings: ProviderSettings) -> tuple[str, ...]:
    """Return the paths whose change replaces an object.

    They include the data of a ConfigMap or Secret by default: the new name rolls out pods that use it.
    """
    api_version, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
    group = api_version.rpartition("/")[0]
    is_immutable = obj.get("immutable") is True
    if (group, kind) == ("", "Secret") and (is_immutable or not settings.secrets_mutable):
        return (*IDENTITY, "type", "stringData", "data")
    if (group, kind) == ("", "ConfigMap") and (is_immutable or not settings.config_maps_mutable):
        return (*IDENTITY, "binaryData", "data")
    return (*IDENTITY, *_IMMUTABLE.get(f"{group}/{kind}", ()))


def replaces(change: PropertyChange, immutable: Sequence[str]) -> bool:
    """Whether a change is at, below or above an immutable path."""
    anywhere = PropertyChange(path=_LIST_INDEX.sub("[*]", change.path), kind=change.kind)
    return anywhere.within(immutable)


def delete_before_replace(old: Json, new: Json) -> bool:
    """Whether the old object must be deleted before its replacement, because both have the same fixed name."""
    if annotation(new, AUTONAMED) == "true":
        return False
    return _place(old) == _place(new)


def _place(obj: Json) -> tuple[object, object]:
    metadata = mapping(obj.get("metadata"))
    return metadata.get("namespace") or "default", metadata.get("name")


class _Missing:
    pass


_MISSING = _Missing()


def covers(live: JsonValue, inputs: JsonValue) -> bool:
    """Whether an object contains all inputs with the same values."""
    return _pruned(live, inputs) == inputs


def live_inputs(inputs: Json, *, expected: Json, live: Json) -> Json:
    """Return the inputs that correspond to the live object.

    `expected` is the object that the API server derives from `inputs`: it normalizes values ("1000m" becomes "1") and
    drops write-only fields (stringData of a Secret). If the live value is the expected value, the result has the input
    value, so only changes by others differ.
    """
    return cast("Json", _merged(inputs, expected, live))


def without_system_fields(obj: Json, read_only_metadata: Sequence[str]) -> Json:
    """Return the inputs for an object that no program created: without fields that the system sets."""
    metadata = cast("Json", obj.get("metadata", {}))
    settable = {name: value for name, value in metadata.items() if name not in read_only_metadata}
    annotations = {
        name: value
        for name, value in cast("Json", metadata.get("annotations", {})).items()
        if name
        not in ("deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration")
    }
    settable.pop("annotations", None)
    settable |= {"annotations": annotations} if annotations else {}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": settable}


def _merged(inputs: JsonValue, expected: "JsonValue | _Missing", live: "JsonValue | _Missing") -> JsonValue:
    if isinstance(inputs, Mapping) and isinstance(live, Mapping):
        fields = expected if isinstance(expected, Mapping) else inputs
        return {
            key: _merged(value, fields.get(key, _MISSING), live.get(key, _MISSING))
            for key, value in inputs.items()
            if key in live or key not in fields
        }
    if expected == live or isinstance(live, _Missing):
        return inputs
    if _is_list(inputs) and _is_list(live) and _is_list(expected):
        return _merged_lists(_items(inputs), _items(expected), _items(live))
    return live


def _merged_lists(
    inputs: Sequence[JsonValue], expected: Sequence[JsonValue], live: Sequence[JsonValue]
) -> JsonValue:
    if not len(inputs) == len(expected) == len(live):
        return live
    return [_merged(*each) for each in zip(inputs, expected, live, strict=True)]


def _pruned(live: JsonValue, inputs: JsonValue) -> JsonValue:
    if isinstance(live, Mapping) and isinstance(inputs, Mapping):
        return {key: _pruned(live[key], value) for key, value in inputs.items() if key in live}
    if _is_list(live) and _is_list(inputs) and len(_items(live)) == len(_items(inputs)):
        return [_pruned(*each) for each in zip(_items(live), _items(inputs), strict=True)]
    return live


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _items(value: object) -> Sequence[JsonValue]:
    return cast("Sequence[JsonValue]", value)
