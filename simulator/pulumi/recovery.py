"""What a killed run was in the middle of, and how the next one takes it up."""

from collections.abc import Callable, Mapping

from pulumi.automation import Deployment

from holdfast.scheduling.json import Json
from holdfast.simulator.pulumi.checkpoint import Checkpoint, PendingOperation

# A second run would make such an object again, so the engine asks a human for its id. Its own flag for that,
# `--import-pending-creates`, forgets the operation and imports nothing in a file backend (3.245).
CLEAR_PENDING = "--clear-pending-creates"


def adoptable(checkpoint: Checkpoint, made: Callable[[PendingOperation], str | None]) -> dict[str, str]:
    """Return, by URN, the ids of the objects which interrupted creates did make.

    `made` returns the id of one such object, None where a create made nothing.
    """
    creates = (operation for operation in checkpoint.pending if operation.kind == "creating")
    return {operation.urn: found for operation in creates if (found := made(operation)) is not None}


def adopting(checkpoint: Checkpoint, ids: Mapping[str, str]) -> Deployment:
    """Return the state with objects adopted that an interrupted create made; `ids` are theirs, by URN.

    What the engine had asked for stands in for outputs until a refresh reads them. An object being replaced
    is marked for deletion, as the engine does when the create of its successor is answered.
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
