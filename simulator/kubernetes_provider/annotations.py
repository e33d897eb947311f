"""What a program tells the provider by annotations on an object."""

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.objects import mapping

AUTONAMED = "pulumi.com/autonamed"
SKIP_AWAIT = "pulumi.com/skipAwait"
WAIT_FOR = "pulumi.com/waitFor"
PATCH_FORCE = "pulumi.com/patchForce"
_TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"
_FIELD_MANAGER = "pulumi.com/patchFieldManager"
_PROPAGATION = "pulumi.com/deletionPropagationPolicy"

DEFAULT_TIMEOUT_SECONDS = 600.0


def annotation(obj: Json, name: str) -> str | None:
    """Return an annotation's value, None where it is not set."""
    value = mapping(mapping(obj.get("metadata")).get("annotations")).get(name)
    return None if value is None else str(value)


def is_set(obj: Json, name: str) -> bool:
    """Whether an annotation says "true"."""
    return annotation(obj, name) == "true"


def field_manager(obj: Json) -> str | None:
    """Return the field manager the program chose, None where it chose none."""
    return annotation(obj, _FIELD_MANAGER) or None


def timeout_seconds(obj: Json, custom: float) -> float:
    """Return how long to wait for an object: customTimeouts (0: not set), else the annotation, else 600 s."""
    if custom > 0:
        return custom
    try:
        return float(int(annotation(obj, _TIMEOUT_SECONDS) or ""))
    except ValueError:
        return DEFAULT_TIMEOUT_SECONDS


def propagation(obj: Json) -> str:
    """Return what becomes of an object's dependents when it is deleted: they go first, unless annotated."""
    chosen = (annotation(obj, _PROPAGATION) or "").lower()
    return {"orphan": "Orphan", "background": "Background"}.get(chosen, "Foreground")
