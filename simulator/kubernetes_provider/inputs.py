"""Checking the inputs of an object, and completing them: its name, its namespace, its kind."""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import yaml

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.kubernetes_provider.operation import AUTONAMED, Naming, is_patch, kind_of
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret, Unknown, Value, has_secret, reveal

if TYPE_CHECKING:
    _Base = yaml.SafeLoader
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


# What the API server writes into an object: a manifest taken from a cluster may still hold it.
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


def checked(
    token: str,
    news: Properties,
    olds: Properties,
    *,
    naming: Naming,
    default_namespace: Callable[[], str | None],
) -> dict[str, Value]:
    """Return an object's inputs, complete. Unknown parts stay as they are.

    `default_namespace` returns the namespace for an object of this kind that names none, None where it is to
    have none. Raises RehearsalError for what no API server could take.
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
    """Return `<logical name>-<8 hex digits>`, the same for the same seed; without a seed by chance."""
    digest = hashlib.sha256(seed + logical_name.encode()).hexdigest() if seed else secrets.token_hex()
    return f"{logical_name}-{digest[:_SUFFIX_LENGTH]}"


def _named(
    token: str, kind: str, metadata: dict[str, Value], olds: Properties, naming: Naming
) -> dict[str, Value]:
    if metadata.get("name"):
        return metadata
    if is_patch(token, kind):
        raise RehearsalError(
            f"{naming.logical_name}: metadata.name is not set; a patch needs the name of the object it patches"
        )
    if metadata.get("generateName"):
        raise RehearsalError(
            f"{naming.logical_name}: metadata.generateName cannot be applied by a server; set metadata.name, "
            "or neither and be given a name"
        )
    return _autonamed(metadata, _old_autoname(olds) or _new_name(naming))


def _new_name(naming: Naming) -> str:
    if naming.disabled:
        raise RehearsalError(f"{naming.logical_name}: metadata.name is not set, and autonaming is disabled")
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


# The SDKs cannot have a dash in a property's name; these fields of a CRD's schema do.
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
    """Return wholly known properties as the object the API server takes: secrets laid open, nulls left out."""
    return cast("Json", _to_json(reveal(properties)))


def to_properties(obj: Json) -> dict[str, Value]:
    """Return an object as properties, its fields under the names the SDKs know."""
    return cast("dict[str, Value]", _to_value(obj))


def fields(properties: Properties, name: str) -> Properties:
    """Return the object at a property, looking through secretness; empty when absent or unknown."""
    value = properties.get(name)
    if isinstance(value, Secret):
        value = value.value
    return value if isinstance(value, Mapping) else {}


def mark_secrets(shown: Properties, known: Properties) -> dict[str, Value]:
    """Return `shown` with secret what is secret in `known`, and always what a Secret holds."""
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
    """Reads what looks like a date as the text it is: JSON, and so Kubernetes, has no dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}


def objects_in(text: str) -> Iterator[Json]:
    """Yield the objects in YAML documents; a List's items one by one, empty documents not at all.

    Raises RehearsalError for text that is not YAML, or a document that is no object.
    """
    for document in _documents(text):
        if document is None:
            continue
        obj = mapping(document)
        if "kind" not in obj:
            raise RehearsalError(f"a YAML document is no Kubernetes object: it begins {str(document)[:60]!r}")
        if str(obj["kind"]).endswith("List") and "items" in obj:
            yield from map(mapping, sequence(obj["items"]))
        else:
            yield obj


def resource_names(manifest: str) -> dict[str, list[str]]:
    """Return the names in a release's manifest by kind: `{"Deployment.apps/apps/v1": ["ns/name"]}`."""
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
