"""CEL variables over a JobSet or RayJob, with the ladder of its namespace as `params`.

They determine which pod templates of the job follow the ladder and on which tier they start. They are the
same for both kinds; `JobKind` holds the difference, which is where the templates are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.kubernetes.admission.expressions import (
    has_limit,
    selects_by_affinity,
    selects_by_label,
    text,
    texts,
)
from pulumi_holdfast.ladder.labels import (
    FOLLOWS,
    FOLLOWS_VALUE,
    GPU_RESOURCE,
    ON_DEMAND,
    ORIGINAL,
    POOL,
    SPOT,
)
from pulumi_holdfast.ladder.ladder import UNLIMITED

if TYPE_CHECKING:
    from pulumi_holdfast.kubernetes.admission.rules import NodeSelection

#: Whether the tier `t` is of the cluster's own: pods of a job select no other, and a pool elsewhere may have the name of one here.
HERE: Final = "!has(t.cluster)"

#: The label of jobs that Kueue manages. Kueue sets the node selectors of their templates.
QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """Where a kind of job keeps its pod templates.

    `templates` is the path below `object.spec` to the list of items that have a template, `name` the field
    that names an item, `pod_template` the path from an item to its template. `controller` is the value of
    `managedBy` for jobs of the kind's own operator. `unstoppable` are fields with which its operator cannot suspend a job, each
    with the expression for whether it is set: such a job follows no ladder.
    """

    group: str
    version: str
    resource: str
    templates: Sequence[str]
    name: str
    pod_template: Sequence[str]
    controller: str
    unstoppable: Mapping[str, str] = field(default_factory=dict[str, str])

    def items_of(self, job: str) -> str:
        """The list of items that have a pod template."""
        return f"{job}.?spec{''.join(f'.?{step}' for step in self.templates)}.orValue([])"

    def template_of(self, item: str) -> str:
        """The pod template of an item, as an optional."""
        return f"{item}{''.join(f'.?{step}' for step in self.pod_template)}"

    def path_of(self, index: str) -> str:
        """The JSON pointer to the item at an index, as an expression."""
        return f'"/spec/{"/".join(self.templates)}/" + string({index})'

    @property
    def template_path(self) -> str:
        """The JSON pointer from an item to its template."""
        return "".join(f"/{step}" for step in self.pod_template)


def variables(kind: JobKind, capacity: Sequence[NodeSelection]) -> Mapping[str, str]:
    """Return the policy variables by name, each after those that it uses.

    `capacity` are the labels, other than a pool's name, with which pods select spot on this cloud.
    """
    tier = "variables.tiers[i]"
    # Without facts the last tier counts as on-demand, unless `maxFailures: -1` says that jobs stay on it.
    unsaid = f"i < size(variables.tiers) - 1 || {tier}.?maxFailures.orValue(0) == {UNLIMITED}"
    # Jobs leave reserved capacity as they leave spot, so that they follow the ladder there too.
    is_spot = (
        f"{tier}.?facts.?capacity.orValue({unsaid} ? {text(SPOT)} : {text(ON_DEMAND)}) != {text(ON_DEMAND)}"
    )
    keys = texts([selection.key for selection in capacity])
    return {
        "tiers": f"params.spec.tiers.filter(t, {HERE})",
        "pools": "variables.tiers.map(t, t.pool)",
        "spotPools": f"lists.range(size(variables.tiers)).filter(i, {is_spot}).map(i, {tier}.pool)",
        "items": kind.items_of("object"),
        "specs": f"variables.items.map(r, {kind.template_of('r')}.?spec.orValue({{}}))",
        "spots": f"variables.specs.map(s, {asks_for_spot(capacity)})",
        "suited": suited(),
        "label": f'object.metadata.?labels[?{text(FOLLOWS)}].orValue("")',
        "adjusted": f"object.metadata.?annotations[?{text(ORIGINAL)}].hasValue()",
        "queued": f'object.metadata.?labels[?{text(QUEUE_NAME)}].orValue("") != ""',
        "own": f"object.?spec.?managedBy.orValue({text(kind.controller)}) == {text(kind.controller)}"
        + "".join(f" && !({is_set})" for is_set in kind.unstoppable.values()),
        "wished": (
            f"variables.own && (variables.label == {text(FOLLOWS_VALUE)} || "
            'variables.label == "" && variables.spots.exists(s, s) && variables.suited)'
        ),
        "following": f"variables.wished ? {following(kind, keys)} : []",
    }


def asks_for_spot(capacity: Sequence[NodeSelection]) -> str:
    """Return whether the pod specification `s` selects spot in any way."""
    ways = [
        *(selects_by_label(selection, "s") for selection in capacity),
        *(selects_by_affinity(selection, "s") for selection in capacity),
        f's.?nodeSelector[?{text(POOL)}].orValue("") in variables.spotPools',
    ]
    return " || ".join(ways)


def suited() -> str:
    """Return whether the job fits the machines of the ladder, as far as the tiers' facts are known.

    A job without GPUs does not follow a ladder of GPU pools, and a job with GPUs does not follow a ladder
    without them. Such a job was meant for pools outside the ladder and keeps its own selectors.
    """
    gpus = "t.?facts.?machine.?gpus"
    has_gpus = f"variables.tiers.exists(t, {gpus}.orValue(0) > 0)"
    wants_gpus = (
        "lists.range(size(variables.specs)).exists(i, variables.spots[i] && "
        f"{has_limit(GPU_RESOURCE, 'variables.specs[i]')})"
    )
    return f"!variables.tiers.exists(t, {gpus}.hasValue()) || {has_gpus} == {wants_gpus}"


def following(kind: JobKind, capacity_keys: str) -> str:
    """Return the indexes of the templates that follow the ladder.

    If any template selects spot, these are the templates that select spot; the others (such as a driver
    without a selector) are meant for other machines. If the job only has the label, these are the templates
    that select nothing or a pool of the ladder. Once admission has adjusted the job, these are the templates
    that it labeled.
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
        f"{template}.?spec.hasValue() && (variables.adjusted ? {marked} : ({chosen})))"
    )
