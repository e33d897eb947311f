"""Pod templates, and the child Jobs that JobSet creates from them.

Which templates follow the ladder, the capacity they select, their resource requests; whether a child Job still creates pods,
has ended, or is going to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from pulumi_holdfast.controller.jobs.pod_shapes import PodShape, placement_of
from pulumi_holdfast.controller.jobs.reservations import reservation_toleration
from pulumi_holdfast.controller.kube.objects import condition_of, labels_of, metadata_of, objects, text
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.ladder.labels import (
    CAPACITY_KEYS,
    FOLLOWS,
    FOLLOWS_VALUE,
    POOL,
    REPLICATED_JOB,
    RESERVED_FOR,
    RESTART_ATTEMPT,
)
from pulumi_holdfast.ladder.quantities import format_quantity, remembered_requests


def followers(templates: Sequence[Json]) -> tuple[bool, ...]:
    """Return which pod templates of a job follow its ladder: those that admission has labeled.

    Without labels, those that select a pool or a kind of capacity: a template without a selector (a coordinator on the
    default pool) stays where it is; if none has a selector, all follow.
    """
    marked = tuple(_is_marked(template) for template in templates)
    if any(marked):
        return marked
    selecting = tuple(_selects(mapping(template.get("spec"))) for template in templates)
    return selecting if any(selecting) else tuple(True for _ in templates)


def pool_of(pod_specs: Iterable[Json]) -> str | None:
    """Return the one pool that templates select; None for none, for several, or if some select none."""
    pools = {text(selector_of(spec).get(POOL)) or None for spec in pod_specs}
    return pools.pop() if len(pools) == 1 else None


def selector_of(pod_spec: Json) -> Json:
    """Return a template's node selector."""
    return mapping(pod_spec.get("nodeSelector"))


def with_pool(pod_spec: Json, pool: str, *, reserved_for_uid: str | None) -> Json:
    """Return a template that selects `pool` and no other capacity.

    `reserved_for_uid`: the uid of the job whose reserved capacity its pods may use; None for none. Other selectors (a zone, a
    machine type) are the author's and stay.
    """
    kept = {key: value for key, value in selector_of(pod_spec).items() if key not in CAPACITY_KEYS}
    tolerations: list[JsonValue] = [
        each for each in objects(pod_spec.get("tolerations")) if each.get("key") != RESERVED_FOR
    ]
    if reserved_for_uid is not None:
        tolerations.append(reservation_toleration(reserved_for_uid))
    changed: dict[str, JsonValue] = {**pod_spec, "nodeSelector": {**kept, POOL: pool}}
    changed.pop("tolerations", None)
    return {**changed, "tolerations": tolerations} if tolerations else changed


def capacity_selection(pod_spec: Json) -> JsonValue:
    """Return the part of a template that a move changes, to compare two templates.

    Nothing else: fields that other controllers add to a Job's template would make every Job look outdated.
    """
    selector = {
        key: value for key, value in selector_of(pod_spec).items() if key == POOL or key in CAPACITY_KEYS
    }
    reserved = sorted(
        text(each.get("value"))
        for each in objects(pod_spec.get("tolerations"))
        if each.get("key") == RESERVED_FOR
    )
    return {"selector": selector, "reserved": reserved}


def with_labels(template: Json, labels: Mapping[str, str]) -> Json:
    """Return a template, of a pod or of a Job, whose objects have further labels."""
    metadata = metadata_of(template)
    return {**template, "metadata": {**metadata, "labels": {**mapping(metadata.get("labels")), **labels}}}


def pod_labels(template: Json) -> Mapping[str, str]:
    """Return the labels that a template gives its pods."""
    return {key: text(value) for key, value in labels_of(template).items()}


def _is_marked(template: Json) -> bool:
    return labels_of(template).get(FOLLOWS) == FOLLOWS_VALUE


def _selects(pod_spec: Json) -> bool:
    return bool(selector_of(pod_spec).keys() & {POOL, *CAPACITY_KEYS})


def shape_of(
    pod_spec: Json, count: int, labels: Mapping[str, str] = MappingProxyType({}), problem: str | None = None
) -> PodShape:
    """Return the resource requests and the placement of `count` pods of a template; see `placement_of`."""
    tolerations = tuple(
        each for each in objects(pod_spec.get("tolerations")) if each.get("key") != RESERVED_FOR
    )
    return PodShape(
        count=count,
        requests=requests_of(pod_spec),
        tolerations=tolerations,
        placement=placement_of(pod_spec, labels, problem),
    )


def requests_of(pod_spec: Json) -> Mapping[str, str]:
    """Return a pod's effective requests as quantities."""
    return {name: format_quantity(amount) for name, amount in remembered_requests(pod_spec).items()}


def affinity_problem(pod_specs: Iterable[Json], kind: str) -> str | None:
    """Return why templates cannot be moved to another tier, and the fix; None if they can.

    JobSet's affinity is immutable, and a pool selector beside it may match no node.
    """
    keys = sorted({key for spec in pod_specs for key in _required_keys(spec)} & {POOL, *CAPACITY_KEYS})
    if not keys:
        return None
    return (
        f"its node affinity requires {', '.join(keys)}, which ties it to one kind of capacity: create the {kind} again "
        "with a nodeSelector instead"
    )


def _required_keys(pod_spec: Json) -> Iterator[str]:
    affinity = mapping(mapping(pod_spec.get("affinity")).get("nodeAffinity"))
    required = mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    for term in objects(required.get("nodeSelectorTerms")):
        yield from (text(each.get("key")) for each in objects(term.get("matchExpressions")))


def replicated_job_of(child: Json) -> str:
    """Return the name of the template of a child Job or a pod."""
    return text(labels_of(child).get(REPLICATED_JOB))


def is_complete(child: Json) -> bool:
    """Whether a child Job has completed, or creates no more pods and is about to complete."""
    return has_condition(child, "Complete") or has_condition(child, "SuccessCriteriaMet")


def has_failed(child: Json) -> bool:
    """Whether a child Job has failed: JobSet reacts to a failure even while it is suspended."""
    return has_condition(child, "Failed")


def will_fail(child: Json) -> bool:
    """Whether a child Job is going to fail and has not yet.

    A suspended Job does not fail, even without pods (measured on 1.36); it fails once it is resumed.
    """
    return has_condition(child, "FailureTarget") and not has_failed(child)


def has_condition(obj: Json, condition: str) -> bool:
    """Whether an object has a condition that is true."""
    return condition_of(obj, condition).get("status") == "True"


def is_suspended(child: Json) -> bool:
    """Whether JobSet has suspended a child Job."""
    return mapping(child.get("spec")).get("suspend") is True


def stays_suspended(child: Json) -> bool:
    """Whether the Job controller has noticed that a child Job is suspended. It suspends none that will fail.

    One that is being deleted may fail all the same.
    """
    is_kept = is_suspended(child) and not has_failed(child) and not is_being_deleted(child)
    return is_kept and (has_condition(child, "Suspended") or will_fail(child))


def is_being_deleted(child: Json) -> bool:
    """Whether the deletion of a child Job was requested."""
    return bool(metadata_of(child).get("deletionTimestamp"))


def is_older(child: Json, restarts: int) -> bool:
    """Whether a child Job is from before the last of these restarts of its JobSet."""
    attempt = text(labels_of(child).get(RESTART_ATTEMPT))
    return attempt.isdecimal() and int(attempt) < restarts


def capacity_selection_of_child(child: Json) -> JsonValue:
    """Return the part of a child Job's template that a move changes."""
    pod_spec = mapping(mapping(mapping(child.get("spec")).get("template")).get("spec"))
    return capacity_selection(pod_spec)
