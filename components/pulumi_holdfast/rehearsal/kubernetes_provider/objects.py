"""The operations on Kubernetes objects: check, diff, plan, create, read, update and delete.

`KubernetesProvider` calls `Objects` for every type except Helm releases.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.plugin import InitFailedError
from pulumi_holdfast.rehearsal.engine.values import Properties, has_unknown
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.errors import KubeError, NoSuchKind
from pulumi_holdfast.rehearsal.kubernetes_client.objects import identity
from pulumi_holdfast.rehearsal.kubernetes_provider.apply import (
    apply,
    apply_in_order,
    existing_of,
    forces,
    is_managed_by,
    manager_in,
    manager_of,
    object_outputs,
    planned_outputs,
    read_object,
    refuse_foreign_object,
)
from pulumi_holdfast.rehearsal.kubernetes_provider.deletion import delete, wait_until_gone
from pulumi_holdfast.rehearsal.kubernetes_provider.diff import (
    covers,
    live_inputs,
    object_diff,
    without_system_fields,
)
from pulumi_holdfast.rehearsal.kubernetes_provider.inputs import (
    READ_ONLY_METADATA,
    complete_inputs,
    mark_secrets,
    to_object,
    to_properties,
)
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import (
    GONE,
    Naming,
    Operation,
    ResourceState,
    field_manager,
    is_patch,
    kind_of,
    namespace_and_name,
    object_id,
    timeout_seconds,
)
from pulumi_holdfast.rehearsal.kubernetes_provider.waits import (
    NotReadyError,
    refuse_unready,
    wait_until_ready,
)

# ruff: noqa: ARG002 - objects and releases have the same operations


@dataclass(frozen=True, kw_only=True)
class Objects:
    """Implements the operations on objects; `faults` are injected into their creation."""

    faults: Faults

    def check(self, operation: Operation, news: Properties, olds: Properties, naming: Naming) -> Properties:
        """Return the inputs with the name, and with the default namespace of the provider."""

        def default_namespace() -> str | None:
            namespace = operation.settings.default_namespace
            return namespace if namespace and _is_namespaced(operation, news) else None

        return complete_inputs(
            operation.token, news, olds, naming=naming, default_namespace=default_namespace
        )

    def diff(
        self, operation: Operation, outputs: Properties, old: Properties, new: Properties
    ) -> provider_pb2.DiffResponse:
        """Compare the last-applied inputs with new inputs."""
        patches = is_patch(operation.token, str(new.get("kind")))
        return object_diff(old, new, settings=operation.settings, patches=patches)

    def plan_create(self, operation: Operation, inputs: Properties) -> Properties:
        """Return the planned outputs. Raises RehearsalError if `create` would refuse the object."""
        if has_unknown(inputs) or is_patch(operation.token, str(inputs.get("kind"))):
            return inputs
        obj = to_object(inputs)
        manager = manager_of(operation, obj)
        existing = existing_of(operation, obj)
        # In a preview of a replacement, the old object still exists, even if another manager changed it.
        if existing is not None and not operation.has_predecessor:
            refuse_foreign_object(operation, existing, manager=manager)
        return _dry_run(operation, obj, inputs, manager=manager, force=True)

    def plan_update(self, operation: Operation, inputs: Properties, outputs: Properties) -> Properties:
        """Return the planned outputs of an update."""
        if has_unknown(inputs):
            return inputs
        obj = to_object(inputs)
        manager = field_manager(obj) or manager_in(outputs, operation.urn)
        return _dry_run(operation, obj, inputs, manager=manager, force=forces(operation, obj))

    def read(
        self, operation: Operation, resource_id: str, outputs: Properties, inputs: Properties
    ) -> ResourceState:
        """Return the live object, GONE if it does not exist.

        Its inputs are the last-applied inputs with changes by others, or for an import, all fields that a program can
        set. Raises InitFailedError for a workload that is not ready.
        """
        kind = kind_of(operation.token)
        namespace, name = namespace_and_name(resource_id)
        api_version, named = (
            str(inputs.get(field) or outputs.get(field) or default)
            for field, default in (("apiVersion", kind.api_version), ("kind", kind.kind))
        )
        try:
            live = operation.client.get(api_version, named, name, namespace)
        except NoSuchKind:
            return GONE
        if live is None:
            return GONE
        manager = manager_in(outputs, operation.urn)
        now = _inputs_now(operation, live, inputs, manager=manager)
        outcome = ResourceState(
            id=resource_id, outputs=object_outputs(live, now, manager=manager), inputs=now
        )
        if inputs:
            _refuse_unready(operation, live, outcome)
        return outcome

    def create(self, operation: Operation, inputs: Properties) -> ResourceState:
        """Create an object and wait until it is ready.

        An existing object with its name is adopted if an interrupted run of this resource created it, if the provider
        upserts, or for a patch; otherwise it raises RehearsalError. Raises InitFailedError if the object does not
        become ready.
        """
        obj = to_object(inputs)
        manager = manager_of(operation, obj)
        existing = existing_of(operation, obj)
        if existing is not None and mapping(existing.get("metadata")).get("deletionTimestamp"):
            seconds = timeout_seconds(obj, operation.custom_timeout)
            wait_until_gone(operation.client, existing, seconds=seconds)
        elif existing is not None:
            refuse_foreign_object(operation, existing, manager=manager)
        self.faults.before_create(operation.urn)
        applied = apply_in_order(
            operation.client,
            obj,
            manager=manager,
            force=forces(operation, obj),
            cancellation=operation.cancellation,
        )
        self.faults.after_create(operation.urn)
        return _wait_until_ready(operation, applied, inputs, manager=manager)

    def update(
        self,
        operation: Operation,
        resource_id: str,
        inputs: Properties,
        outputs: Properties,
        ignored: Sequence[str],
    ) -> ResourceState:
        """Update an object and wait until it is ready.

        `ignored` are paths whose live values do not change. Raises RehearsalError if the object was deleted, and
        InitFailedError if it does not become ready.
        """
        obj = to_object(inputs)
        live = read_object(operation, obj, resource_id)
        if live is None:
            raise RehearsalError(
                f"{identity(obj)} was deleted outside this stack; refresh the stack, then update it"
            )
        manager = field_manager(obj) or manager_in(outputs, operation.urn)
        for path in ignored:
            obj = _with_live_value(obj, live, path.split("."))
        applied = apply(operation.client, obj, manager=manager, force=forces(operation, obj))
        return _wait_until_ready(operation, applied, inputs, manager=manager)

    def remove(self, operation: Operation, resource_id: str, outputs: Properties) -> None:
        """Delete an object and wait for its removal; a patch only releases its fields."""
        known = to_object(outputs)
        kind = kind_of(operation.token)
        namespace, name = namespace_and_name(resource_id)
        obj: Json = {
            "apiVersion": known.get("apiVersion", kind.api_version),
            "kind": known.get("kind", kind.kind),
            "metadata": {
                "name": name,
                **({"namespace": namespace} if namespace else {}),
                "annotations": mapping(mapping(known.get("metadata")).get("annotations")),
            },
        }
        if is_patch(operation.token, str(obj["kind"])):
            _relinquish(operation, obj, manager=manager_in(outputs, operation.urn))
        else:
            delete(operation.client, obj, seconds=timeout_seconds(obj, operation.custom_timeout))

    def made(self, operation: Operation, inputs: Properties) -> str | None:
        """Return the id of the object that an interrupted create made, None if it made none."""
        if has_unknown(inputs):
            return None
        obj = to_object(inputs)
        if not mapping(obj.get("metadata")).get("name"):
            return None
        live = read_object(operation, obj, object_id(obj))
        return object_id(live) if live and is_managed_by(live, manager_of(operation, obj)) else None


def _wait_until_ready(
    operation: Operation, applied: Json, inputs: Properties, *, manager: str
) -> ResourceState:
    seconds = timeout_seconds(applied, operation.custom_timeout)
    try:
        live = wait_until_ready(operation.client, applied, seconds=seconds)
    except NotReadyError as error:
        raise InitFailedError(
            resource_id=object_id(error.live),
            properties=object_outputs(error.live, inputs, manager=manager),
            inputs=inputs,
            reasons=error.reasons,
        ) from error
    return ResourceState(
        id=object_id(live), outputs=object_outputs(live, inputs, manager=manager), inputs=inputs
    )


def _relinquish(operation: Operation, obj: Json, *, manager: str) -> None:
    """Apply only the name of the object: the API server removes the fields that this manager owned."""
    if read_object(operation, obj, object_id(obj)) is not None:
        bare: Json = {
            **obj,
            "metadata": {
                key: value for key, value in mapping(obj["metadata"]).items() if key != "annotations"
            },
        }
        apply(operation.client, bare, manager=manager, force=False)


def _with_live_value(obj: Json, live: Json, path: Sequence[str]) -> Json:
    """Return an object with the live value at a path: two managers may own a field with the same value."""
    name, rest = path[0], path[1:]
    if name not in live:
        return obj
    if not rest:
        return {**obj, name: live[name]}
    inner = _with_live_value(mapping(obj.get(name)), mapping(live[name]), rest)
    return {**obj, name: inner}


def _is_namespaced(operation: Operation, news: Properties) -> bool:
    """Whether a kind is namespaced; an unserved kind is assumed to be."""
    kind = kind_of(operation.token)
    try:
        return operation.client.namespaced(
            str(news.get("apiVersion") or kind.api_version), str(news.get("kind") or kind.kind)
        )
    except NoSuchKind:
        return True


def _dry_run(operation: Operation, obj: Json, inputs: Properties, *, manager: str, force: bool) -> Properties:
    """Return the outputs of a dry run, or the inputs if the dry run cannot succeed yet."""
    try:
        shown = apply(operation.client, obj, manager=manager, force=force, dry_run=True)
    except KubeError as error:
        if _is_inconclusive(error):
            return inputs
        raise
    return planned_outputs(shown, inputs, manager=manager)


def _is_inconclusive(error: KubeError) -> bool:
    """Whether a dry run fails although the real run can succeed.

    The same run creates the kind or the namespace, or replaces the object; or the webhook does not run yet, or does
    not support dry runs.
    """
    messages = ("field is immutable", "does not support dry run", "failed calling webhook")
    return error.status in (403, 404) or any(each in error.message for each in messages)


def _inputs_now(operation: Operation, live: Json, inputs: Properties, *, manager: str) -> Properties:
    if not inputs:
        return mark_secrets(to_properties(without_system_fields(live, READ_ONLY_METADATA)), {})
    applied = to_object(inputs)
    if covers(live, applied):
        return inputs
    now = live_inputs(applied, expected=_expected(operation, applied, manager=manager), live=live)
    return mark_secrets(to_properties(now), inputs)


def _expected(operation: Operation, applied: Json, *, manager: str) -> Json:
    """Return the object that the API server derives from the inputs, or the inputs if the dry run fails."""
    try:
        return apply(operation.client, applied, manager=manager, force=True, dry_run=True)
    except (KubeError, RehearsalError):
        return applied


def _refuse_unready(operation: Operation, live: Json, outcome: ResourceState) -> None:
    try:
        refuse_unready(operation.client, live)
    except NotReadyError as error:
        raise InitFailedError(
            resource_id=outcome.id, properties=outcome.outputs, inputs=outcome.inputs, reasons=error.reasons
        ) from error
