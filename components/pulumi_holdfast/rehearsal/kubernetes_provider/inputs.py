"""Completes the inputs of an object, and converts between property values, objects and YAML."""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import yaml

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.engine.values import (
    UNKNOWN,
    Properties,
    Secret,
    Unknown,
    Value,
    has_secret,
    reveal,
)
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import AUTONAMED, Naming, is_patch, kind_of

if TYPE_CHECKING:
    _Base = yaml.SafeLoader
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


# The API server writes these fields; a manifest exported from a cluster may contain them.
READ_ONLY_METADATA = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)
_SUFFIX_LENGTH = 8


def complete_inputs(
    token: str,
    news: Properties,
    olds: Properties,
    *,
    naming: Naming,
    default_namespace: Callable[[], str | None],
) -> dict[str, Value]:
    """Return the inputs with name, namespace and kind. Unknown values do not change.

    `default_namespace` returns the namespace for an object of this kind without one, None for no namespace. Raises
    RehearsalError for inputs that no API server accepts.
    """
    kind = kind_of(token)
    inputs = {name: value for name, value in news.items() if value is not None}
    inputs.setdefault("apiVersion", kind.api_version)
    inputs.setdefault("kind", kind.kind)
    _refuse_lists(token, inputs)
    if isinstance(inputs.get("metadata"), Unknown):
        return mark_secrets(inputs, {})
    metadata: dict[str, Value] = {
        name: value for name, value in fields(inputs, "metadata").items() if value is not None
    }
    for name in READ_ONLY_METADATA:
        metadata.pop(name, None)
    metadata = _named(token, str(inputs["kind"]), metadata, olds, naming)
    if not metadata.get("namespace"):
        metadata.pop("namespace", None)
        namespace = default_namespace()
        metadata |= {"namespace": namespace} if namespace else {}
    return mark_secrets({**inputs, "metadata": metadata}, {})


def autoname(logical_name: str, seed: bytes) -> str:
    """Return `<logical name>-<8 hex digits>`: the same digits for the same seed, random digits without a seed."""
    digest = hashlib.sha256(seed + logical_name.encode()).hexdigest() if seed else secrets.token_hex()
    return f"{logical_name}-{digest[:_SUFFIX_LENGTH]}"


def _named(
    token: str, kind: str, metadata: dict[str, Value], olds: Properties, naming: Naming
) -> dict[str, Value]:
    if metadata.get("name"):
        return metadata
    if is_patch(token, kind):
        raise RehearsalError(
            f"{naming.logical_name}: metadata.name is not set; set it to the name of the object to patch"
        )
    if metadata.get("generateName"):
        raise RehearsalError(
            f"{naming.logical_name}: server-side apply does not support metadata.generateName; "
            "set metadata.name, or leave both unset"
        )
    return _autonamed(metadata, _old_autoname(olds) or _new_name(naming))


def _new_name(naming: Naming) -> str:
    if naming.disabled:
        raise RehearsalError(
            f"{naming.logical_name}: metadata.name is not set, and autonaming is disabled; set it"
        )
    return naming.proposed or autoname(naming.logical_name, naming.seed)


def _autonamed(metadata: dict[str, Value], name: str) -> dict[str, Value]:
    named = {**metadata, "name": name}
    if metadata.get("annotations") is not UNKNOWN:
        named["annotations"] = {**fields(metadata, "annotations"), AUTONAMED: "true"}
    return named


def _old_autoname(olds: Properties) -> str | None:
    metadata = fields(olds, "metadata")
    is_autonamed = fields(metadata, "annotations").get(AUTONAMED) == "true"
    name = metadata.get("name")
    return str(_plain(name)) if is_autonamed and name else None


def _plain(value: Value) -> Value:
    return value.value if isinstance(value, Secret) else value


def _refuse_lists(token: str, inputs: Properties) -> None:
    if str(inputs["kind"]).endswith("List") and "items" in inputs:
        raise RehearsalError(
            f"{token}: a list cannot be created; register each of its {len(cast('list[Value]', inputs['items']))} "
            "items as a resource of its own kind"
        )


# Property names of the SDKs contain no dash, but these fields of a CRD schema do.
_DASHED = {
    f"x_kubernetes_{name}": f"x-kubernetes-{name.replace('_', '-')}"
    for name in (
        "embedded_resource",
        "int_or_string",
        "list_map_keys",
        "list_type",
        "map_type",
        "preserve_unknown_fields",
        "validations",
    )
}
_UNDERSCORED = {dashed: name for name, dashed in _DASHED.items()}
_SECRET_FIELDS = ("data", "stringData")


def to_object(properties: Properties) -> Json:
    """Return known properties as an object for the API server, with plain secrets and without nulls."""
    return cast("Json", _to_json(reveal(properties)))


def to_properties(obj: Json) -> dict[str, Value]:
    """Return an object as properties with the field names of the SDKs."""
    return cast("dict[str, Value]", _to_value(obj))


def fields(properties: Properties, name: str) -> Properties:
    """Return the object at a property, also inside a secret; empty if absent or unknown."""
    value = properties.get(name)
    if isinstance(value, Secret):
        value = value.value
    return value if isinstance(value, Mapping) else {}


def mark_secrets(shown: Properties, known: Properties) -> dict[str, Value]:
    """Return `shown` with the secrets of `known` marked, and with the data of a Secret marked."""
    marked = dict(shown)
    if marked.get("kind") == "Secret":
        for name in _SECRET_FIELDS:
            if name in marked and not isinstance(marked[name], Secret):
                marked[name] = Secret(marked[name])
        return marked
    for name, value in known.items():
        if name in marked:
            marked[name] = _marked(marked[name], value)
    return marked


def _marked(shown: Value, known: Value) -> Value:
    if isinstance(shown, Mapping) and isinstance(known, Mapping):
        return mark_secrets(shown, known)
    if has_secret(known) and not isinstance(shown, Secret):
        return Secret(shown)
    return shown


def _to_json(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return {_DASHED.get(key, key): _to_json(item) for key, item in value.items() if item is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_to_json(item) for item in value]
    return value


def _to_value(value: JsonValue) -> Value:
    if isinstance(value, Mapping):
        return {_UNDERSCORED.get(key, key): _to_value(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_to_value(item) for item in value]
    return value


_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Loader(_Base):
    """Reads a date as text, because JSON, and therefore Kubernetes, has no dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}


def objects_in(text: str) -> Iterator[Json]:
    """Yield the objects of YAML documents, including each item of a List, without empty documents.

    Raises RehearsalError for text that is not YAML, and for a document that is no object.
    """
    for document in _documents(text):
        if document is None:
            continue
        obj = mapping(document)
        if "kind" not in obj:
            raise RehearsalError(
                f"a YAML document is no Kubernetes object; it starts with {str(document)[:60]!r}"
            )
        if str(obj["kind"]).endswith("List") and "items" in obj:
            yield from map(mapping, sequence(obj["items"]))
        else:
            yield obj


def resource_names(manifest: str) -> dict[str, list[str]]:
    """Return the object names of a release manifest by kind: `{"Deployment.apps/apps/v1": ["ns/name"]}`."""
    names: dict[str, set[str]] = {}
    for obj in objects_in(manifest):
        api_version, metadata = str(obj["apiVersion"]), mapping(obj.get("metadata"))
        group = api_version.rpartition("/")[0]
        kind = f"{obj['kind']}.{group}" if group else str(obj["kind"])
        namespace, name = metadata.get("namespace"), str(metadata.get("name"))
        names.setdefault(f"{kind}/{api_version}", set()).add(f"{namespace}/{name}" if namespace else name)
    return {key: sorted(found) for key, found in names.items()}


def _documents(text: str) -> Iterator[JsonValue]:
    try:
        yield from cast("Iterator[JsonValue]", yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise RehearsalError(f"the text is not YAML: {error}") from error
