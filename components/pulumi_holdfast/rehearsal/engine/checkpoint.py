"""Reads a stack's checkpoint, and adopts what an interrupted run created."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pulumi.automation import Deployment

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence


@dataclass(frozen=True, kw_only=True)
class RecordedResource:
    """A resource in the checkpoint; `id` is empty for a component, `external` is set for one that was only read.

    `protected`: the engine refuses to delete it; `retained`: the engine drops it from the state without deleting it.
    """

    urn: str
    id: str
    external: bool = False
    protected: bool = False
    retained: bool = False

    @property
    def name(self) -> str:
        """The logical name."""
        return self.urn.rsplit("::", 1)[-1]

    @property
    def type(self) -> str:
        """The type token, without the types of the parents."""
        return type_in(self.urn)


@dataclass(frozen=True, kw_only=True)
class PendingOperation:
    """An operation that a killed engine had started; `inputs` are the requested properties."""

    kind: str
    urn: str
    inputs: Json

    @property
    def name(self) -> str:
        """The operation in words: `creating vpc`."""
        return f"{self.kind} {self.urn.rsplit('::', 1)[-1]}"

    @property
    def type(self) -> str:
        """The type token of the resource, without the types of the parents."""
        return type_in(self.urn)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The state of a stack: its resources and its pending operations.

    `latest` is the deployment in the file backend, in the format of `version`.
    """

    version: int = 3
    latest: Json = field(default_factory=dict[str, JsonValue])

    @property
    def resources(self) -> tuple[RecordedResource, ...]:
        """The resources, in the order of their creation."""
        return tuple(
            RecordedResource(
                urn=str(entry["urn"]),
                id=str(entry.get("id", "")),
                external=entry.get("external") is True,
                protected=entry.get("protect") is True,
                retained=entry.get("retainOnDelete") is True,
            )
            for entry in self.entries("resources")
        )

    @property
    def pending(self) -> tuple[PendingOperation, ...]:
        """The operations that a killed engine had started."""
        return tuple(
            PendingOperation(
                kind=str(entry["type"]),
                urn=str(mapping(entry.get("resource"))["urn"]),
                inputs=mapping(mapping(entry.get("resource")).get("inputs")),
            )
            for entry in self.entries("pending_operations")
        )

    def entries(self, name: str) -> list[Json]:
        """Return a list of the deployment."""
        return [mapping(entry) for entry in sequence(self.latest.get(name))]


def type_in(urn: str) -> str:
    """Return the type token in a URN, without the types of the parents."""
    return urn.split("::")[2].rsplit("$", 1)[-1]


def read_checkpoint(file: Path) -> Checkpoint:
    """Return the checkpoint in a file of the file backend; an empty one where the file does not exist."""
    if not file.is_file():
        return Checkpoint()
    document = cast("Json", json.loads(file.read_text(encoding="utf-8")))
    return Checkpoint(
        version=int(str(document["version"])),
        latest=mapping(mapping(document.get("checkpoint")).get("latest")),
    )


# The engine asks the user for the ids of pending creates. Its own flag for that,
# `--import-pending-creates`, drops the operation and imports nothing in a file backend (3.245).
CLEAR_PENDING = "--clear-pending-creates"


def find_adoptable(checkpoint: Checkpoint, made: Callable[[PendingOperation], str | None]) -> dict[str, str]:
    """Return, by URN, the ids of the objects that interrupted creates left in the cloud.

    `made` returns the id of such an object, or None where the create had no effect.
    """
    creates = (operation for operation in checkpoint.pending if operation.kind == "creating")
    return {operation.urn: found for operation in creates if (found := made(operation)) is not None}


def adopt(checkpoint: Checkpoint, ids: Mapping[str, str]) -> Deployment:
    """Return the state with the objects of interrupted creates added; `ids` are by URN.

    Their inputs serve as outputs until a refresh reads them. An object that is being replaced
    is marked for deletion, as the engine does after the create of its replacement.
    """
    pending = [entry for entry in checkpoint.entries("pending_operations") if _urn(entry) not in ids]
    adopted = [
        _adopted(entry, ids[_urn(entry)])
        for entry in checkpoint.entries("pending_operations")
        if _urn(entry) in ids
    ]
    kept = [
        {**entry, "delete": True} if entry["urn"] in ids else entry
        for entry in checkpoint.entries("resources")
    ]
    return Deployment(
        version=checkpoint.version,
        deployment={**checkpoint.latest, "resources": [*kept, *adopted], "pending_operations": pending},
    )


def _resource(operation: Json) -> Json:
    resource = operation.get("resource")
    return resource if isinstance(resource, Mapping) else {}


def _urn(operation: Json) -> str:
    return str(_resource(operation).get("urn", ""))


def _adopted(operation: Json, found: str) -> Json:
    resource = _resource(operation)
    return {**resource, "id": found, "outputs": resource.get("inputs", {})}
