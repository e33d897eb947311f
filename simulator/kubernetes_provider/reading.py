"""Reading objects back: for a refresh, an import, and after an interrupted run."""

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.errors import KubeError, NoSuchKind
from holdfast.simulator.kubernetes_provider.applying import apply
from holdfast.simulator.kubernetes_provider.checkpoint import manager_in, outputs_of
from holdfast.simulator.kubernetes_provider.drift import covers, live_inputs, without_system_fields
from holdfast.simulator.kubernetes_provider.inputs import READ_ONLY_METADATA
from holdfast.simulator.kubernetes_provider.operation import GONE, Operation, Outcome, place_of
from holdfast.simulator.kubernetes_provider.properties import mark_secrets, to_object, to_properties
from holdfast.simulator.kubernetes_provider.tokens import kind_of
from holdfast.simulator.kubernetes_provider.waiting import NotReadyError, refuse_unready
from holdfast.simulator.pulumi.serving import InitFailedError
from holdfast.simulator.pulumi.values import Properties


def read(operation: Operation, resource_id: str, olds: Properties, inputs: Properties) -> Outcome:
    """Return an object as it is now, GONE when it is not there.

    Its inputs are the last-applied ones, with the values that others have given them since; without any, for
    an import, everything a program could have written. Raises InitFailedError for a workload that is not ready.
    """
    kind = kind_of(operation.token)
    namespace, name = place_of(resource_id)
    api_version = str(inputs.get("apiVersion") or olds.get("apiVersion") or kind.api_version)
    try:
        live = operation.client.get(
            api_version, str(inputs.get("kind") or olds.get("kind") or kind.kind), name, namespace
        )
    except NoSuchKind:
        return GONE
    if live is None:
        return GONE
    manager = manager_in(olds, operation.urn)
    now = _inputs_now(operation, live, inputs, manager=manager)
    outcome = Outcome(id=resource_id, outputs=outputs_of(live, now, manager=manager), inputs=now)
    if inputs:
        _refuse_unready(operation, live, outcome)
    return outcome


def _inputs_now(operation: Operation, live: Json, inputs: Properties, *, manager: str) -> Properties:
    if not inputs:
        return mark_secrets(to_properties(without_system_fields(live, READ_ONLY_METADATA)), {})
    applied = to_object(inputs)
    if covers(live, applied):
        return inputs
    now = live_inputs(applied, expected=_expected(operation, applied, manager=manager), live=live)
    return mark_secrets(to_properties(now), inputs)


def _expected(operation: Operation, applied: Json, *, manager: str) -> Json:
    """Return what the API server makes of the inputs; the inputs themselves where it cannot say."""
    try:
        return apply(operation.client, applied, manager=manager, force=True, dry_run=True)
    except (KubeError, RehearsalError):
        return applied


def _refuse_unready(operation: Operation, live: Json, outcome: Outcome) -> None:
    try:
        refuse_unready(operation.client, live)
    except NotReadyError as error:
        raise InitFailedError(
            resource_id=outcome.id,
            properties=outcome.outputs,
            inputs=outcome.inputs,
            reasons=error.reasons,
        ) from error
