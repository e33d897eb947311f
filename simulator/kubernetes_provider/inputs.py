"""Checking the inputs of an object, and completing them: its name, its namespace, its kind."""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.annotations import AUTONAMED
from holdfast.simulator.kubernetes_provider.properties import fields, mark_secrets
from holdfast.simulator.kubernetes_provider.tokens import is_patch, kind_of
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret, Unknown, Value

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


@dataclass(frozen=True, kw_only=True)
class Naming:
    """How to name what the program gives no name: the logical name, and what the engine says to it."""

    logical_name: str
    seed: bytes = b""
    proposed: str | None = None
    disabled: bool = False


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
