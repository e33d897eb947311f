"""Which pods of a job follow its ladder, what they select, and what they are made to select."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.fallback.jobs.values import mapping, metadata_of, objects, text
from holdfast.fallback.reservations.placeholders import hold_toleration
from holdfast.scheduling.labels import CAPACITY_KEYS, FOLLOWS, FOLLOWS_VALUE, HELD_FOR, POOL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.scheduling.json import Json, JsonValue


def followers(templates: Sequence[Json]) -> tuple[bool, ...]:
    """Return which pod templates of a job follow its ladder: those that admission has marked.

    Of a job that admission has not seen, those that select a pool or a kind of capacity: what selects nothing (a
    coordinator on the default pool) stays where it is; when that is all of them, all follow.
    """
    marked = tuple(_is_marked(template) for template in templates)
    if any(marked):
        return marked
    selecting = tuple(_selects(mapping(template.get("spec"))) for template in templates)
    return selecting if any(selecting) else tuple(True for _ in templates)


def pool_of(pod_specs: Iterable[Json]) -> str | None:
    """Return the one pool that templates select; None for none, for several, or for some that select none."""
    pools = {text(selector_of(spec).get(POOL)) or None for spec in pod_specs}
    return pools.pop() if len(pools) == 1 else None


def selector_of(pod_spec: Json) -> Json:
    """Return a template's node selector."""
    return mapping(pod_spec.get("nodeSelector"))


def selecting(pod_spec: Json, pool: str, *, held_for: str | None) -> Json:
    """Return a template that selects `pool` and no other capacity.

    `held_for`: the uid of the job whose held capacity its pods may use; None for none. Selectors of other kinds (a
    zone, a machine type) are its author's and stay.
    """
    kept = {key: value for key, value in selector_of(pod_spec).items() if key not in CAPACITY_KEYS}
    tolerations: list[JsonValue] = [
        each for each in objects(pod_spec.get("tolerations")) if each.get("key") != HELD_FOR
    ]
    if held_for is not None:
        tolerations.append(hold_toleration(held_for))
    changed: dict[str, JsonValue] = {**pod_spec, "nodeSelector": {**kept, POOL: pool}}
    changed.pop("tolerations", None)
    return {**changed, "tolerations": tolerations} if tolerations else changed


def placement_of(pod_spec: Json) -> JsonValue:
    """Return the part of a template that a move changes, to compare two by.

    And nothing else: what others add to a Job's template would make it look outdated whenever it is made anew.
    """
    selector = {
        key: value for key, value in selector_of(pod_spec).items() if key == POOL or key in CAPACITY_KEYS
    }
    held = sorted(
        text(each.get("value"))
        for each in objects(pod_spec.get("tolerations"))
        if each.get("key") == HELD_FOR
    )
    return {"selector": selector, "held": held}


def _is_marked(template: Json) -> bool:
    return mapping(metadata_of(template).get("labels")).get(FOLLOWS) == FOLLOWS_VALUE


def _selects(pod_spec: Json) -> bool:
    return bool(selector_of(pod_spec).keys() & {POOL, *CAPACITY_KEYS})
