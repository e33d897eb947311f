"""Whose an object is: this resource's, another one's, or nobody's here."""

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.errors import NoSuchKind
from holdfast.simulator.kubernetes_client.objects import identity
from holdfast.simulator.kubernetes_provider.annotations import PATCH_FORCE, field_manager, is_set
from holdfast.simulator.kubernetes_provider.applying import is_managed_by, manager_for
from holdfast.simulator.kubernetes_provider.operation import Operation, object_id, place_of
from holdfast.simulator.kubernetes_provider.tokens import is_patch


def manager_of(operation: Operation, obj: Json) -> str:
    """Return the field manager a resource is to apply a new object by."""
    return field_manager(obj) or manager_for(operation.urn)


def read_object(operation: Operation, obj: Json, resource_id: str) -> "Json | None":
    """Return the live object of an id, of the kind `obj` has."""
    namespace, name = place_of(resource_id)
    return operation.client.get(str(obj["apiVersion"]), str(obj["kind"]), name, namespace)


def existing_of(operation: Operation, obj: Json) -> "Json | None":
    """Return the object of this name that is there before ours; a patch wants one to be there."""
    if is_patch(operation.token, str(obj["kind"])):
        return None
    try:
        return read_object(operation, obj, object_id(obj))
    except NoSuchKind:
        return None


def refuse_strangers(operation: Operation, existing: Json, *, manager: str) -> None:
    """Raise RehearsalError for an object that exists, unless this resource made it or the provider upserts."""
    if operation.settings.upserts or is_managed_by(existing, manager):
        return
    raise RehearsalError(
        f"{identity(existing)} exists already, and this resource did not make it. If the resource was "
        "renamed in the program, give it an alias; if something else made the object, import it, patch it "
        "with a Patch resource, or set upsertExistingObjects on the provider"
    )


def forces(operation: Operation, obj: Json) -> bool:
    """Whether to take fields over from other managers."""
    return operation.settings.forces_patches or is_set(obj, PATCH_FORCE)
