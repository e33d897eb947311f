"""What has become, behind the stack's back, of the fields a program set."""

from collections.abc import Mapping, Sequence
from typing import cast

from holdfast.scheduling.json import Json, JsonValue


class _Missing:
    pass


_MISSING = _Missing()


def covers(live: JsonValue, inputs: JsonValue) -> bool:
    """Whether an object holds everything that was put into it, word for word."""
    return _pruned(live, inputs) == inputs


def live_inputs(inputs: Json, *, expected: Json, live: Json) -> Json:
    """Return the inputs an object would have been made from to look as it does now.

    `expected` is what the API server makes of `inputs`: it writes values its own way ("1000m" becomes "1") and
    drops what is only written (a Secret's stringData). Where the object is as expected, the inputs' own words
    are kept: only what others changed differs.
    """
    return cast("Json", _merged(inputs, expected, live))


def without_system_fields(obj: Json, read_only_metadata: Sequence[str]) -> Json:
    """Return an object as a program would have written it, for one that no program made."""
    metadata = cast("Json", obj.get("metadata", {}))
    kept = {name: value for name, value in metadata.items() if name not in read_only_metadata}
    annotations = {
        name: value
        for name, value in cast("Json", metadata.get("annotations", {})).items()
        if name
        not in ("deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration")
    }
    kept.pop("annotations", None)
    kept |= {"annotations": annotations} if annotations else {}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": kept}


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
