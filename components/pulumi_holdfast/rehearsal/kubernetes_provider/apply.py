"""Applies objects on the server: field managers, ownership, conflicts and outputs.

`objects.py` calls this module for every create and update, also for dry runs.
"""

import hashlib
import re
import time

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Value
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_client.errors import (
    Cancellation,
    KubeError,
    KubeTimeout,
    NoSuchKind,
)
from pulumi_holdfast.rehearsal.kubernetes_client.objects import condition, identity
from pulumi_holdfast.rehearsal.kubernetes_provider.inputs import mark_secrets, to_properties
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import (
    PATCH_FORCE,
    Operation,
    field_manager,
    is_patch,
    is_set,
    namespace_and_name,
    object_id,
)

# The plugin tries six times, with pauses of 1, 2, 4, 8 and 16 s.
_MISORDERED_SECONDS = 31.0
_DISCOVERY_LAG_SECONDS = 0.1
# Like the plugin, a program overwrites changes made with kubectl.
_OVERRIDDEN_MANAGERS = ("kubectl", "before-first-apply")
_MANAGER_IN_CONFLICT = re.compile(r'conflicts? with "([^"]+)"')
_MISSING_NAMESPACE = re.compile(r'namespaces "([^"]+)" not found')


def manager_for(urn: str) -> str:
    """Return the field manager of a resource. Each resource has its own, so two never share an object.

    The plugin uses eight random digits. Here they come from the URN, so a run that was interrupted during a create
    recognizes its object.
    """
    return f"pulumi-kubernetes-{hashlib.sha256(urn.encode()).hexdigest()[:8]}"


def is_managed_by(obj: Json, manager: str) -> bool:
    """Whether a field manager applied the object."""
    entries = sequence(mapping(obj.get("metadata")).get("managedFields"))
    return any(
        mapping(entry).get("manager") == manager and mapping(entry).get("operation") == "Apply"
        for entry in entries
    )


def apply(client: KubeClient, obj: Json, *, manager: str, force: bool, dry_run: bool = False) -> Json:
    """Apply an object and return the object that the API server stored.

    Raises RehearsalError with field and manager if another manager owns a field that has another value.
    """
    try:
        return client.apply(obj, field_manager=manager, force=force, dry_run=dry_run)
    except KubeError as error:
        if not error.is_conflict or error.reason != "Conflict":
            raise
        if _may_override(error.message):
            return client.apply(obj, field_manager=manager, force=True, dry_run=dry_run)
        raise RehearsalError(
            f"{identity(obj)}: another manager owns a field that this stack sets to another value: "
            f"{error.message}. Remove the field from the program, or take ownership with the annotation "
            f'{PATCH_FORCE}: "true"'
        ) from error


def apply_in_order(
    client: KubeClient, obj: Json, *, manager: str, force: bool, cancellation: Cancellation
) -> Json:
    """Apply an object whose kind or namespace may be created at the same time: wait for both first."""
    deadline = time.monotonic() + _MISORDERED_SECONDS
    while True:
        try:
            return apply(client, obj, manager=manager, force=force)
        except NoSuchKind as error:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not _becomes_served(client, error, remaining):
                raise _unserved(obj, error) from error
            # The server serves the kind shortly after the CRD is established.
            cancellation.pause(_DISCOVERY_LAG_SECONDS)
        except KubeError as error:
            namespace = _MISSING_NAMESPACE.search(error.message) if error.is_missing else None
            remaining = deadline - time.monotonic()
            if namespace is None or remaining <= 0 or not _appears(client, namespace[1], remaining):
                raise


def _may_override(message: str) -> bool:
    managers = _MANAGER_IN_CONFLICT.findall(message)
    return bool(managers) and all(name.startswith(_OVERRIDDEN_MANAGERS) for name in managers)


def _becomes_served(client: KubeClient, missing: NoSuchKind, seconds: float) -> bool:
    group, _, version = missing.api_version.rpartition("/")
    if "." not in group:
        return False  # no CRD can add a kind to a built-in group, for example apps or batch

    def defines(crd: Json) -> bool:
        spec = mapping(crd.get("spec"))
        versions = [mapping(each) for each in sequence(spec.get("versions"))]
        return (
            spec.get("group") == group
            and mapping(spec.get("names")).get("kind") == missing.kind
            and any(each.get("name") == version and each.get("served") for each in versions)
            and condition(crd, "Established").get("status") == "True"
        )

    try:
        client.wait_list(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            timeout_seconds=seconds,
            condition=lambda crds: any(map(defines, crds)),
            what=f"kind {missing.kind} of {missing.api_version} is served",
        )
    except KubeTimeout:
        return False
    client.forget_kinds(missing.api_version)
    return True


def _appears(client: KubeClient, namespace: str, seconds: float) -> bool:
    try:
        client.wait_for(
            "v1",
            "Namespace",
            namespace,
            timeout_seconds=seconds,
            condition=lambda found: found is not None,
            what=f"namespace {namespace} exists",
        )
    except KubeTimeout:
        return False
    return True


def _unserved(obj: Json, error: NoSuchKind) -> RehearsalError:
    return RehearsalError(
        f"{identity(obj)}: the API server does not serve kind {error.kind} of {error.api_version}; install its CRD "
        "first (depends_on), or correct apiVersion and kind"
    )


# The plugin stores these fields in the state, too, so it can manage a stack that the simulator created.
_INPUTS = "__inputs"
_API_VERSION = "__initialApiVersion"
_FIELD_MANAGER = "__fieldManager"
# A dry run returns invented values for these fields.
_INVENTED = ("creationTimestamp", "resourceVersion", "uid")


def object_outputs(live: Json, inputs: Properties, *, manager: str) -> dict[str, Value]:
    """Return an object as outputs, without managedFields and with the secrets of `inputs` marked."""
    metadata = {
        name: value for name, value in mapping(live.get("metadata")).items() if name != "managedFields"
    }
    shown = mark_secrets(to_properties({**live, "metadata": metadata}), inputs)
    return {
        **shown,
        _INPUTS: mark_secrets(inputs, {}),
        _API_VERSION: str(live.get("apiVersion")),
        _FIELD_MANAGER: manager,
    }


def planned_outputs(dry_run: Json, inputs: Properties, *, manager: str) -> dict[str, Value]:
    """Return the outputs of a dry run, with unknown values for fields that only a real run sets."""
    outputs = object_outputs(dry_run, inputs, manager=manager)
    outputs.pop("status", None)
    metadata = outputs.get("metadata")
    invented: dict[str, Value] = dict.fromkeys(_INVENTED, UNKNOWN)
    return {**outputs, "metadata": {**(metadata if isinstance(metadata, dict) else {}), **invented}}


def manager_in(outputs: Properties, urn: str) -> str:
    """Return the field manager that applied the object."""
    manager = outputs.get(_FIELD_MANAGER)
    return manager if isinstance(manager, str) and manager else manager_for(urn)


def manager_of(operation: Operation, obj: Json) -> str:
    """Return the field manager for a new object of a resource."""
    return field_manager(obj) or manager_for(operation.urn)


def read_object(operation: Operation, obj: Json, resource_id: str) -> "Json | None":
    """Return the live object with this id and the kind of `obj`."""
    namespace, name = namespace_and_name(resource_id)
    return operation.client.get(str(obj["apiVersion"]), str(obj["kind"]), name, namespace)


def existing_of(operation: Operation, obj: Json) -> "Json | None":
    """Return an existing object with this name; None for a patch, which expects one."""
    if is_patch(operation.token, str(obj["kind"])):
        return None
    try:
        return read_object(operation, obj, object_id(obj))
    except NoSuchKind:
        return None


def refuse_foreign_object(operation: Operation, existing: Json, *, manager: str) -> None:
    """Raise RehearsalError for an existing object unless this resource created it or the provider upserts."""
    if operation.settings.upserts or is_managed_by(existing, manager):
        return
    raise RehearsalError(
        f"{identity(existing)} already exists, and this resource did not create it. If the resource was renamed in "
        "the program, add an alias. Otherwise import the object, change it with a Patch resource, or set "
        "upsertExistingObjects on the provider"
    )


def forces(operation: Operation, obj: Json) -> bool:
    """Whether to take ownership of fields of other managers."""
    return operation.settings.forces_patches or is_set(obj, PATCH_FORCE)
