"""Sending objects to the API server by server-side apply."""

import hashlib
import re
import time

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeError, KubeTimeout, NoSuchKind
from holdfast.simulator.kubernetes_client.objects import identity, mapping, sequence
from holdfast.simulator.kubernetes_provider.inputs import mark_secrets, to_properties
from holdfast.simulator.kubernetes_provider.operation import (
    PATCH_FORCE,
    Operation,
    field_manager,
    is_patch,
    is_set,
    object_id,
    place_of,
)
from holdfast.simulator.kubernetes_provider.readiness import condition
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Value

# The plugin tries six times, 1 + 2 + 4 + 8 + 16 s apart.
_MISORDERED_SECONDS = 31.0
_DISCOVERY_LAG_SECONDS = 0.1
# What people change by hand with kubectl, a program takes back, as the plugin does.
_OVERRIDDEN_MANAGERS = ("kubectl", "before-first-apply")
_MANAGER_IN_CONFLICT = re.compile(r'conflicts? with "([^"]+)"')
_MISSING_NAMESPACE = re.compile(r'namespaces "([^"]+)" not found')


def manager_for(urn: str) -> str:
    """Return the field manager of a resource: one of its own, so that two resources never share an object.

    The plugin's ends in eight random digits. Here they follow from the URN: a run that was interrupted before
    it learnt that an object is made finds it again as its own.
    """
    return f"pulumi-kubernetes-{hashlib.sha256(urn.encode()).hexdigest()[:8]}"


def is_managed_by(obj: Json, manager: str) -> bool:
    """Whether a field manager has applied an object."""
    entries = sequence(mapping(obj.get("metadata")).get("managedFields"))
    return any(
        mapping(entry).get("manager") == manager and mapping(entry).get("operation") == "Apply"
        for entry in entries
    )


def apply(client: KubeClient, obj: Json, *, manager: str, force: bool, dry_run: bool = False) -> Json:
    """Apply an object and return what the API server made of it.

    Raises RehearsalError naming field and manager where another manager owns a field with another value.
    """
    try:
        return client.apply(obj, field_manager=manager, force=force, dry_run=dry_run)
    except KubeError as error:
        if error.status != 409 or error.reason != "Conflict":
            raise
        if _may_override(error.message):
            return client.apply(obj, field_manager=manager, force=True, dry_run=dry_run)
        raise RehearsalError(
            f"{identity(obj)}: another manager owns a field that this stack sets to another value: "
            f"{error.message}. Leave the field out of the program, or take it over with the annotation "
            f'{PATCH_FORCE}: "true"'
        ) from error


def apply_in_order(
    client: KubeClient, obj: Json, *, manager: str, force: bool, cancellation: Cancellation
) -> Json:
    """Apply an object whose kind or namespace may be made at the same moment: wait for them, then apply."""
    deadline = time.monotonic() + _MISORDERED_SECONDS
    while True:
        try:
            return apply(client, obj, manager=manager, force=force)
        except NoSuchKind as error:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not _becomes_served(client, error, remaining):
                raise _unserved(obj, error) from error
            # An established CRD is served a moment after it says so.
            cancellation.pause(_DISCOVERY_LAG_SECONDS)
        except KubeError as error:
            namespace = _MISSING_NAMESPACE.search(error.message) if error.status == 404 else None
            remaining = deadline - time.monotonic()
            if namespace is None or remaining <= 0 or not _appears(client, namespace[1], remaining):
                raise


def _may_override(message: str) -> bool:
    managers = _MANAGER_IN_CONFLICT.findall(message)
    return bool(managers) and all(name.startswith(_OVERRIDDEN_MANAGERS) for name in managers)


def _becomes_served(client: KubeClient, missing: NoSuchKind, seconds: float) -> bool:
    group, _, version = missing.api_version.rpartition("/")
    if "." not in group:
        return False  # no CRD can bring a kind into the core group, nor into apps or batch

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
        f"{identity(obj)}: the API server serves no kind {error.kind} in {error.api_version}; install its CRD "
        "before it (depends_on), or correct apiVersion and kind"
    )


# The plugin keeps these beside the object. With them it can take over a stack that was made here.
_INPUTS = "__inputs"
_API_VERSION = "__initialApiVersion"
_FIELD_MANAGER = "__fieldManager"
# A dry run makes them up; the object will have others.
_MADE_UP = ("creationTimestamp", "resourceVersion", "uid")


def object_outputs(live: Json, inputs: Properties, *, manager: str) -> dict[str, Value]:
    """Return an object as outputs, without the bookkeeping of who set which field; secret what is in `inputs`."""
    metadata = {
        name: value for name, value in mapping(live.get("metadata")).items() if name != "managedFields"
    }
    shown = mark_secrets(to_properties({**live, "metadata": metadata}), inputs)
    kept: dict[str, Value] = {_INPUTS: mark_secrets(inputs, {})}
    return {**shown, **kept, _API_VERSION: str(live.get("apiVersion")), _FIELD_MANAGER: manager}


def planned_outputs(dry_run: Json, inputs: Properties, *, manager: str) -> dict[str, Value]:
    """Return the outputs an object will have: those of a dry run, less what only a real run can know."""
    outputs = object_outputs(dry_run, inputs, manager=manager)
    outputs.pop("status", None)
    metadata = outputs.get("metadata")
    made_up: dict[str, Value] = dict.fromkeys(_MADE_UP, UNKNOWN)
    return {**outputs, "metadata": {**(metadata if isinstance(metadata, dict) else {}), **made_up}}


def manager_in(outputs: Properties, urn: str) -> str:
    """Return the field manager an object was applied by."""
    kept = outputs.get(_FIELD_MANAGER)
    return kept if isinstance(kept, str) and kept else manager_for(urn)


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
