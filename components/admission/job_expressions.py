"""CEL, as text, over a JobSet or RayJob that is being created, with its namespace's ladder as `params`.

Which of its pod templates follow the ladder, and from which tier. The same for both kinds: they differ in where their
templates are, which `JobKind` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.components.admission.expressions import limits, names_in_affinity, selects, text, texts
from holdfast.scheduling.labels import FOLLOWS, FOLLOWS_VALUE, GPU_RESOURCE, ON_DEMAND, ORIGINAL, POOL, SPOT
from holdfast.scheduling.ladder import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.components.admission.rules import NodeSelection

#: By which a job is Kueue's, who gives its templates the selectors of the flavour they were admitted to.
QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """Where a kind of job keeps its pod templates.

    `templates` is the list of what has one, below `object`; `name` the field that names an item; `pod_template` the way
    from an item to its template. `controller` is the value of `managedBy` of jobs that are its own operator's; `also` is
    what else must hold for the job to be able to follow.
    """

    group: str
    version: str
    resource: str
    templates: Sequence[str]
    name: str
    pod_template: Sequence[str]
    controller: str
    also: str = "true"

    def items_of(self, job: str) -> str:
        """The list of what has a template."""
        return f"{job}.spec{''.join(f'.?{step}' for step in self.templates)}.orValue([])"

    def template_of(self, item: str) -> str:
        """The pod template of an item, optional."""
        return f"{item}{''.join(f'.?{step}' for step in self.pod_template)}"

    def path_of(self, index: str) -> str:
        """The JSON pointer, as text, to the item at an index."""
        return f'"/spec/{"/".join(self.templates)}/" + string({index})'

    @property
    def template_path(self) -> str:
        """What follows the pointer to an item in the one to its template."""
        return "".join(f"/{step}" for step in self.pod_template)


def variables(kind: JobKind, capacity: Sequence[NodeSelection]) -> Mapping[str, str]:
    """Return what the patches refer to, by name and in the order in which one needs the other.

    `capacity` are the selections by which pods of this cloud ask for spot, other than by a pool's name.
    """
    tier = "variables.tiers[i]"
    # Without facts a ladder's last tier is on-demand: it is spot only where it says that nothing ends it.
    unsaid = f"i < size(variables.tiers) - 1 || {tier}.?maxFailures.orValue(0) == {UNLIMITED}"
    is_spot = f"{tier}.?facts.?capacity.orValue({unsaid} ? {text(SPOT)} : {text(ON_DEMAND)}) == {text(SPOT)}"
    keys = texts([selection.key for selection in capacity])
    return {
        "tiers": "params.spec.tiers",
        "pools": "variables.tiers.map(t, t.pool)",
        "spotPools": f"lists.range(size(variables.tiers)).filter(i, {is_spot}).map(i, {tier}.pool)",
        "items": kind.items_of("object"),
        "specs": f"variables.items.map(r, {kind.template_of('r')}.?spec.orValue({{}}))",
        "spots": f"variables.specs.map(s, {asks_for_spot(capacity)})",
        "suited": suited(),
        "label": f'object.metadata.?labels[?{text(FOLLOWS)}].orValue("")',
        "mended": f"object.metadata.?annotations[?{text(ORIGINAL)}].hasValue()",
        "queued": f'object.metadata.?labels[?{text(QUEUE_NAME)}].orValue("") != ""',
        "own": f"object.spec.?managedBy.orValue({text(kind.controller)}) == {text(kind.controller)} && {kind.also}",
        "wished": (
            f"variables.own && (variables.label == {text(FOLLOWS_VALUE)} || "
            'variables.label == "" && variables.spots.exists(s, s) && variables.suited)'
        ),
        "following": f"variables.wished ? {following(kind, keys)} : []",
    }


def asks_for_spot(capacity: Sequence[NodeSelection]) -> str:
    """Return whether the pod specification `s` asks for spot, in any of the ways there are."""
    ways = [
        *(selects(selection, "s") for selection in capacity),
        *(names_in_affinity(selection, "s") for selection in capacity),
        f's.?nodeSelector[?{text(POOL)}].orValue("") in variables.spotPools',
    ]
    return " || ".join(ways)


def suited() -> str:
    """Return whether the job, by what it asks of spot, is one for the machines of the ladder, as far as these are known.

    A job without GPUs would buy GPU machines on a ladder of those, and one with GPUs find none on another: both were meant
    for other pools than their namespace's ladder has, and stay where they are sent.
    """
    gpus = "t.?facts.?machine.?gpus"
    has_gpus = f"variables.tiers.exists(t, {gpus}.orValue(0) > 0)"
    wants_gpus = (
        "lists.range(size(variables.specs)).exists(i, variables.spots[i] && "
        f"{limits(GPU_RESOURCE, 'variables.specs[i]')})"
    )
    return f"!variables.tiers.exists(t, {gpus}.hasValue()) || {has_gpus} == {wants_gpus}"


def following(kind: JobKind, capacity_keys: str) -> str:
    """Return the indexes of the templates that follow.

    Those that ask for spot; what stands beside them was meant for other machines, as a driver that asks for nothing. In a
    job that only has the label: all that leave open where they run, or name a tier. Once mended, those that were marked.
    """
    template = kind.template_of("variables.items[i]")
    marked = f'{template}.?metadata.?labels[?{text(FOLLOWS)}].orValue("") == {text(FOLLOWS_VALUE)}'
    selector = "variables.specs[i].?nodeSelector"
    left_open = (
        f"!{capacity_keys}.exists(k, {selector}[?k].hasValue()) && "
        f"{selector}[?{text(POOL)}].orValue(variables.pools[0]) in variables.pools"
    )
    chosen = f"variables.spots.exists(s, s) ? variables.spots[i] : {left_open}"
    return (
        "lists.range(size(variables.items)).filter(i, "
        f"{template}.?spec.hasValue() && (variables.mended ? {marked} : ({chosen})))"
    )
