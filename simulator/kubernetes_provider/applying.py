"""Sending objects to the API server by server-side apply."""

import hashlib
import re
import time

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeError, KubeTimeout, NoSuchKind
from holdfast.simulator.kubernetes_client.objects import identity, mapping, sequence
from holdfast.simulator.kubernetes_provider.annotations import PATCH_FORCE
from holdfast.simulator.kubernetes_provider.readiness import condition

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
