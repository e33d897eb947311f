"""YAML documents: what a release is made of, and what a program gives as text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import yaml

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

if TYPE_CHECKING:
    _Base = yaml.SafeLoader
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

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
