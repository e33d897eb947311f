"""What a preview can say of an object, by a dry run on the API server."""

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.errors import KubeError, NoSuchKind
from holdfast.simulator.kubernetes_provider.annotations import field_manager
from holdfast.simulator.kubernetes_provider.applying import apply
from holdfast.simulator.kubernetes_provider.checkpoint import manager_in, planned_outputs
from holdfast.simulator.kubernetes_provider.operation import Operation
from holdfast.simulator.kubernetes_provider.ownership import existing_of, forces, manager_of, refuse_strangers
from holdfast.simulator.kubernetes_provider.properties import to_object
from holdfast.simulator.kubernetes_provider.tokens import is_patch
from holdfast.simulator.pulumi.values import Properties, has_unknown


def plan_create(operation: Operation, inputs: Properties) -> Properties:
    """Return the outputs an object will have. Raises RehearsalError for one that `create` would refuse."""
    if has_unknown(inputs) or is_patch(operation.token, str(inputs.get("kind"))):
        return inputs
    obj = to_object(inputs)
    manager = manager_of(operation, obj)
    existing = existing_of(operation, obj)
    # A preview deletes nothing: what a replacement takes the place of is still there, whoever changed it since.
    if existing is not None and not operation.has_predecessor:
        refuse_strangers(operation, existing, manager=manager)
    return _dry_run(operation, obj, inputs, manager=manager, force=True)


def plan_update(operation: Operation, inputs: Properties, olds: Properties) -> Properties:
    """Return the outputs an object will have after an update."""
    if has_unknown(inputs):
        return inputs
    obj = to_object(inputs)
    manager = field_manager(obj) or manager_in(olds, operation.urn)
    return _dry_run(operation, obj, inputs, manager=manager, force=forces(operation, obj))


def _dry_run(operation: Operation, obj: Json, inputs: Properties, *, manager: str, force: bool) -> Properties:
    """Return what the API server says the object will be; the inputs, where it cannot say."""
    try:
        shown = apply(operation.client, obj, manager=manager, force=force, dry_run=True)
    except KubeError as error:
        if _says_nothing(error):
            return inputs
        raise
    return planned_outputs(shown, inputs, manager=manager)


def _says_nothing(error: KubeError) -> bool:
    """Whether a failed dry run tells nothing of the real one.

    The kind or the namespace is made by the same run, the object is about to be replaced, the webhook that
    looks at it is not up yet, or cannot run dry.
    """
    is_expected = isinstance(error, NoSuchKind) or error.status in (403, 404)
    words = ("field is immutable", "does not support dry run", "failed calling webhook")
    return is_expected or any(each in error.message for each in words)
