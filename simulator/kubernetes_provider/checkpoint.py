"""The state of an object as it is kept by the engine."""

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.kubernetes_provider.applying import manager_for
from holdfast.simulator.kubernetes_provider.properties import mark_secrets, to_properties
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Value

# The plugin keeps these beside the object. With them it can take over a stack that was made here.
_INPUTS = "__inputs"
_API_VERSION = "__initialApiVersion"
_FIELD_MANAGER = "__fieldManager"
# A dry run makes them up; the object will have others.
_MADE_UP = ("creationTimestamp", "resourceVersion", "uid")


def outputs_of(live: Json, inputs: Properties, *, manager: str) -> dict[str, Value]:
    """Return an object as outputs, without the bookkeeping of who set which field; secret what is in `inputs`."""
    metadata = {
        name: value for name, value in mapping(live.get("metadata")).items() if name != "managedFields"
    }
    shown = mark_secrets(to_properties({**live, "metadata": metadata}), inputs)
    kept: dict[str, Value] = {_INPUTS: mark_secrets(inputs, {})}
    return {**shown, **kept, _API_VERSION: str(live.get("apiVersion")), _FIELD_MANAGER: manager}


def planned_outputs(dry_run: Json, inputs: Properties, *, manager: str) -> dict[str, Value]:
    """Return the outputs an object will have: those of a dry run, less what only a real run can know."""
    outputs = outputs_of(dry_run, inputs, manager=manager)
    outputs.pop("status", None)
    metadata = outputs.get("metadata")
    made_up: dict[str, Value] = dict.fromkeys(_MADE_UP, UNKNOWN)
    return {**outputs, "metadata": {**(metadata if isinstance(metadata, dict) else {}), **made_up}}


def manager_in(outputs: Properties, urn: str) -> str:
    """Return the field manager an object was applied by."""
    kept = outputs.get(_FIELD_MANAGER)
    return kept if isinstance(kept, str) and kept else manager_for(urn)
