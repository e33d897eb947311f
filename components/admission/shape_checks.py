"""CEL, as text: what each template of a job that follows its ladder asks for, and how many pods of it there are at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.admission.expressions import text
from holdfast.components.admission.tier_checks import amounts, number, said, untolerated
from holdfast.scheduling.labels import GPU_RESOURCE
from holdfast.scheduling.reachability import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.components.admission.job_expressions import JobKind

from holdfast.components.admission.tier_checks import (
    IS_LAST,
    capacity,
    links,
    together,
)
from holdfast.scheduling.labels import ON_DEMAND, SPOT
from holdfast.scheduling.ladder import UNLIMITED

_CPU: Final = "cpu"
_MEMORY: Final = "memory"
_MIB: Final = 2**20
# `dyn`: or the type checker takes every amount for a text.
_NONE: Final = 'dyn("0")'


def shapes(kind: JobKind, pods: Callable[[str], str]) -> str:
    """Return a map for each template that follows.

    It holds `name`, `pods`, what each requests (`cpu` in thousandths, `memory` in MiB, `gpus`), the pods' specification as
    `spec`, the taints that they do not tolerate as `untolerated`, and whether it runs `beside` the others. The argument `pods` gives the expression for how many pods there are of an item.
    """
    item, spec = "variables.items[i]", "variables.specs[i]"
    waits = f'{item}.?dependsOn.orValue([]).exists(d, d.?status.orValue("") == "Complete")'
    fields = {
        "name": f"string({item}.{kind.name})",
        "pods": pods(item),
        "cpu": needed(spec, _CPU, _millis),
        # Bytes, since amounts are added up exactly and then rounded up.
        "memory": f"({needed(spec, _MEMORY, _whole)} + {_MIB - 1}) / {_MIB}",
        "gpus": needed(spec, GPU_RESOURCE, _whole),
        "spec": spec,
        "untolerated": untolerated(spec),
        "beside": f"!{waits}",
    }
    pairs = ", ".join(f"{text(name)}: dyn({value})" for name, value in fields.items())
    return f"variables.following.map(i, {{{pairs}}})"


def needed(spec: str, resource: str, measure: Callable[[str], str]) -> str:
    """Return how much of a resource a pod requests, by its specification.

    Sidecars run beside the other containers; each other init container runs alone, or with sidecars, which is not looked at:
    it may be more than this, and never less. What the pod requests as a whole stands for its containers.
    """
    inits = f"{spec}.?initContainers.orValue([])"
    always = 'c.?restartPolicy.orValue("") == "Always"'
    each = measure(_requested("c", resource))
    running = f"{spec}.?containers.orValue([]).map(c, {each}).sum()"
    sidecars = f"{inits}.filter(c, {always}).map(c, {each}).sum()"
    alone = f"([0] + {inits}.filter(c, !({always})).map(c, {each})).max()"
    own = f"{spec}.?resources.?requests[?{text(resource)}]"
    asked = measure(f"{own}.orValue({_NONE})")
    whole = f"({own}.hasValue() ? {asked} : [{running} + {sidecars}, {alone}].max())"
    overhead = measure(f"{spec}.?overhead[?{text(resource)}].orValue({_NONE})")
    return f"({whole} + {overhead})"


def _requested(container: str, resource: str) -> str:
    """A limit without a request is one."""
    resources = f"{container}.?resources"
    limit = f"{resources}.?limits[?{text(resource)}].orValue({_NONE})"
    return f"{resources}.?requests[?{text(resource)}].orValue({limit})"


def _millis(amount: str) -> str:
    # Rounded up, as the scheduler does; the last thousandth is left for what a float makes of 0.57.
    return f"int(quantity(string({amount})).asApproximateFloat() * 1000.0 + 0.999)"


def _whole(amount: str) -> str:
    return f"int(quantity(string({amount})).asApproximateFloat() + 0.999)"


def title(shape: str) -> str:
    """Return how a message names a shape."""
    gang = f"{shape}.pods == 1 ? {text(messages.ALONE)} : {said(messages.GANG, pods=number(f'{shape}.pods'))}"
    return said(messages.SHAPE, name=f"{shape}.name", gang=gang, requests=amounts(shape))


def jobset_pods(item: str) -> str:
    """Return how many pods there are at once of one of a JobSet's jobs."""
    spec = f"{item}.?template.?spec"
    parallelism = f"int({spec}.?parallelism.orValue(1))"
    completions = f"int({spec}.?completions.orValue({parallelism}))"
    return f"int({item}.?replicas.orValue(1)) * [{parallelism}, {completions}].min()"


def rayjob_pods(item: str) -> str:
    """Return how many pods a group of workers cannot do without: where Ray scales it, the fewest that it may have."""
    least = f"int({item}.?minReplicas.orValue(0))"
    most = f"int({item}.?maxReplicas.orValue(2147483647))"
    asked = f"int({item}.?replicas.orValue(0))"
    scales = "object.spec.rayClusterSpec.?enableInTreeAutoscaling.orValue(false)"
    wanted = f"({scales} ? {least} : {asked})"
    replicas = f"({wanted} < {least} ? {least} : [{wanted}, {most}].min())"
    hosts = f"[1, int({item}.?numOfHosts.orValue(1))].max()"
    return f"({item}.?suspend.orValue(false) ? 0 : {replicas} * {hosts})"


_TIER: Final = "variables.tiers[i]"


def start() -> str:
    """Return the tier at which the job begins, -1 where its templates name none of the ladder's or several."""
    return "size(variables.chosen) == 1 ? variables.pools.indexOf(variables.chosen[0]) : -1"


def broken() -> str:
    """Return for each tier why the job cannot be there: a sentence for each shape, and one for all together.

    A tier above the first one is left out: the job does not come by it.
    """
    why = "w.join(" + text(" ") + f') + ({IS_LAST} ? "" : " " + {text(messages.NO_WAY_PAST)})'
    where = said(messages.TIER, number=number("i + 1"), pool=f"{_TIER}.pool")
    of_shape = said(messages.CANNOT_FALL_BACK, who=title("variables.shapes[j]"), where=where, why=why)
    of_all = said(messages.CANNOT_FALL_BACK, who=text(messages.THE_JOB), where=where, why=why)
    found = " + ".join([f"({capacity()})", *(f"variables.{link}[i][j]" for link in links())])
    shapes = f"lists.range(size(variables.shapes)).map(j, [{found}].filter(w, size(w) > 0).map(w, {of_shape})).flatten()"
    job = f"[{together()}].filter(w, size(w) > 0).map(w, {of_all})"
    return (
        "variables.start < 0 ? [] : lists.range(size(variables.tiers)).map(i, "
        f"i < variables.start ? [] : ({shapes} + {job}))"
    )


def end() -> str:
    """Return the tier on which the walk ends: a list of its index, or of nothing.

    It ends where the job would be stuck or fall off, where it may be on on-demand nodes, or where it may stay for ever.
    """
    has_timeout = f"{_TIER}.?procurementTimeout.hasValue()"
    is_spot = f"{_TIER}.?facts.?capacity.orValue({text(ON_DEMAND)}) == {text(SPOT)}"
    stays = f"{_TIER}.?maxFailures.orValue(0) == {UNLIMITED} && ({IS_LAST} || !{has_timeout})"
    ends = f"size(variables.broken[i]) > 0 ? ({IS_LAST} || !{has_timeout}) : (!({is_spot}) || {stays})"
    return (
        "variables.start < 0 ? [] : lists.range(size(variables.tiers))"
        f".filter(i, i >= variables.start && ({ends}))"
    )


def ending() -> str:
    """Return why the job does not come to its ladder's end: nothing where it does, or where that is not known."""
    return "size(variables.end) == 0 ? [] : variables.broken[variables.end[0]]"
