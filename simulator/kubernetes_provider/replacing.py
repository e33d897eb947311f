"""Which changes of an object need a new object: what an API server refuses to change in place."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import cast

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.kubernetes_provider.annotations import AUTONAMED, annotation
from holdfast.simulator.kubernetes_provider.settings import Settings
from holdfast.simulator.pulumi.diffing import Change

IDENTITY = ("metadata.name", "metadata.namespace")
_IMMUTABLE = cast(
    "Mapping[str, Sequence[str]]",
    json.loads(
        resources.files("holdfast.simulator.kubernetes_provider")
        .joinpath("immutable.json")
        .read_text(encoding="utf-8")
    ),
)
_LIST_INDEX = re.compile(r"\[\d+\]")


def immutable_paths(obj: Json, settings: Settings) -> tuple[str, ...]:
    """Return the paths of an object whose change replaces it.

    A ConfigMap's or Secret's content is among them by default, so that pods which use it by its autoname get
    it anew.
    """
    api_version, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
    group = api_version.rpartition("/")[0]
    is_immutable = obj.get("immutable") is True
    if (group, kind) == ("", "Secret") and (is_immutable or not settings.secrets_mutable):
        return (*IDENTITY, "type", "stringData", "data")
    if (group, kind) == ("", "ConfigMap") and (is_immutable or not settings.config_maps_mutable):
        return (*IDENTITY, "binaryData", "data")
    return (*IDENTITY, *_IMMUTABLE.get(f"{group}/{kind}", ()))


def replaces(change: Change, immutable: Sequence[str]) -> bool:
    """Whether a change is at, below or around an immutable path."""
    anywhere = Change(path=_LIST_INDEX.sub("[*]", change.path), kind=change.kind)
    return anywhere.within(immutable)


def must_go_first(old: Json, new: Json) -> bool:
    """Whether an object must go before its replacement can come: both bear the name the program fixed."""
    if annotation(new, AUTONAMED) == "true":
        return False
    return _place(old) == _place(new)


def _place(obj: Json) -> tuple[object, object]:
    metadata = mapping(obj.get("metadata"))
    return metadata.get("namespace") or "default", metadata.get("name")
