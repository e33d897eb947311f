"""The state of a Helm release as it is kept by the engine."""

from collections.abc import Mapping, Sequence
from typing import cast

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_provider.manifests import resource_names
from holdfast.simulator.kubernetes_provider.properties import to_properties
from holdfast.simulator.pulumi.values import Properties, Secret, Value, has_secret, reveal

_STATUS = ("appVersion", "chart", "name", "namespace", "revision", "status", "version")
_SECRET_TEXT = "[secret]"  # noqa: S105 - what stands for one


def outputs_of(shown: Json, inputs: Properties, *, manifest: str) -> dict[str, Value]:
    """Return a release's outputs, from what helm shows of it and the manifest it applied."""
    return {
        **inputs,
        "status": to_properties({key: shown.get(key) for key in _STATUS}),
        "resourceNames": cast("Value", resource_names(manifest)),
        "__inputs": Secret(inputs),
    }


def inputs_now(inputs: Properties, shown: Json, values: JsonValue) -> Properties:
    """Return the inputs that would give the release as helm shows it; `values` are those it has now.

    Without inputs, for an import, they are all there is to know of it.
    """
    if not inputs:
        imported = {name: shown.get(name) for name in ("chart", "name", "namespace", "version")}
        return to_properties({**imported, "values": values})
    now: dict[str, Value] = {**inputs, "version": str(shown.get("version"))}
    before = inputs.get("values")
    if reveal(before or {}) != values:
        found = to_properties(values) if isinstance(values, Mapping) else {}
        now["values"] = Secret(found) if has_secret(before) else found
    return now


def without_secrets(message: str, inputs: Properties) -> str:
    """Return a message with every secret text of the inputs taken out."""
    for text in sorted(_secret_texts(inputs), key=len, reverse=True):
        message = message.replace(text, _SECRET_TEXT)
    return message


def _secret_texts(value: Value, *, within: bool = False) -> set[str]:
    if isinstance(value, Secret):
        return _secret_texts(value.value, within=True)
    if isinstance(value, str):
        return {value} if within and value else set()
    parts: Sequence[Value] = ()
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, Sequence):
        parts = value
    return {text for part in parts for text in _secret_texts(part, within=within)}
