"""CEL expressions for the shapes of a job and for its walk down the ladder.

A shape is a template that follows the ladder: its pods and their requests. The walk is that of
`scheduling.reachability.walk`, for all shapes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pulumi_holdfast.kubernetes.admission.expressions import text, texts
from pulumi_holdfast.kubernetes.admission.job_expressions import HERE, JobKind
from pulumi_holdfast.kubernetes.admission.tier_checks import (
    IS_LAST,
    at_most_requested,
    capacity_check,
    fill_template,
    format_requests,
    integer_string,
    is_in_bytes,
    tier_checks,
    untolerated_taints,
)
from pulumi_holdfast.ladder.labels import EFA_RESOURCE, GPU_RESOURCE, ON_DEMAND
from pulumi_holdfast.ladder.ladder import UNLIMITED
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.shape import DEVICE_FIELDS, MOST_REQUESTED

_CPU: Final = "cpu"
_MEMORY: Final = "memory"
_MIB: Final = 2**20
# Without `dyn` the type checker infers a string for every quantity.
_NONE: Final = 'dyn("0")'


def request_variables() -> Mapping[str, str]:
    """Return the requests of a pod of each template that follows the ladder, by the name of the policy variable.

    They are no part of `shapes`: the API server checks types in a time that grows with the square of an expression's
    length.
    """
    spec = "variables.specs[i]"
    # In bytes: the amounts are added exactly and then rounded up.
    mebibytes = f"({{}} + {_MIB - 1}) / {_MIB}"
    amounts = {
        "requestedCpu": at_most_requested(requested_by_pod(spec, text(_CPU), _millis)),
        "requestedMemory": at_most_requested(mebibytes.format(requested_by_pod(spec, text(_MEMORY), _whole))),
        "requestedGpus": at_most_requested(requested_by_pod(spec, text(GPU_RESOURCE), _whole)),
        "requestedEfa": at_most_requested(requested_by_pod(spec, text(EFA_RESOURCE), _whole)),
        "requestedDevices": _devices(spec, mebibytes),
    }
    return {name: f"variables.following.map(i, {amount})" for name, amount in amounts.items()}


def shapes(kind: JobKind, pods: Callable[[str], str]) -> str:
    """Return one map for each template that follows the ladder.

    It has `name`, `pods` (their number), the requests of a pod (`cpu` in thousandths, `memory` in MiB,
    `gpus`, `efa`, `devices` by name), the pod specification `spec`, the taints that it does not tolerate (`untolerated`),
    `onePerNode`, whether no two of its pods share a node, and `beside`, whether it certainly runs together with the other shapes.
    The argument `pods` returns the expression for the number of pods of an item.
    """
    item, spec = "variables.items[i]", "variables.specs[i]"
    fields = {
        "name": f"string({item}.{kind.name})",
        "pods": pods(item),
        "cpu": "variables.requestedCpu[j]",
        "memory": "variables.requestedMemory[j]",
        "gpus": "variables.requestedGpus[j]",
        "efa": "variables.requestedEfa[j]",
        "devices": "variables.requestedDevices[j]",
        "spec": spec,
        "untolerated": untolerated_taints(spec),
        "onePerNode": "variables.onePerNode[j]",
        "beside": f"!{_waits(kind, item)}",
    }
    pairs = ", ".join(f"{text(name)}: dyn({value})" for name, value in fields.items())
    return f"lists.range(size(variables.following)).map(j, [variables.following[j]].map(i, {{{pairs}}})[0])"


def _waits(kind: JobKind, item: str) -> str:
    """Return whether an item begins after another one has completed, itself or through those that it depends on.

    JobSet takes dependencies on earlier items only. An item with a chain of more than three dependencies counts as waiting.
    """

    def depends(one: str, met: Callable[[str], str], on: str) -> str:
        return f"{one}.?dependsOn.orValue([]).exists({on}, {met(on)})"

    def completes(on: str) -> str:
        return f'{on}.?status.orValue("") == "Complete"'

    def through(on: str, met: Callable[[str], str]) -> str:
        named = f'o{on}.?{kind.name}.orValue("") == {on}.?name.orValue("-")'
        return f"{completes(on)} || variables.items.exists(o{on}, {named} && {met(f'o{on}')})"

    def third(one: str) -> str:
        return depends(one, lambda _: "true", "f")

    def second(one: str) -> str:
        return depends(one, lambda on: through(on, third), "e")

    return depends(item, lambda on: through(on, second), "d")


def _devices(spec: str, mebibytes: str) -> str:
    """Return how much a pod requests of each resource that has no field of its own."""
    listed = [f"{spec}.?containers.orValue([])", f"{spec}.?initContainers.orValue([])"]
    holders = f"({' + '.join(f'{each}.map(c, c.?resources)' for each in listed)} + [{spec}.?resources])"
    keys = " + ".join(f"h.?{field}.orValue({{}}).map(k, string(k))" for field in ("requests", "limits"))
    overhead = f"{spec}.?overhead.orValue({{}}).map(k, string(k))"
    names = f"({holders}.map(h, {keys}).flatten() + {overhead}).distinct().filter(n, !(n in {texts(DEVICE_FIELDS)}))"
    whole = requested_by_pod(spec, "n", _whole)
    amount = f"({is_in_bytes('n')} ? {mebibytes.format(whole)} : {whole})"
    return f"{names}.transformMapEntry(_, n, {{n: {at_most_requested(amount)}}}).transformMap(n, a, a > 0, a)"


def requested_by_pod(spec: str, resource: str, measure: Callable[[str], str]) -> str:
    """Return how much of a resource, an expression for its name, a pod requests.

    Sidecars run together with the other containers, and each other init container runs before them. Init
    containers that run together with sidecars are not added up, so the result may be too low, never too high.
    A request on the pod level replaces those of the containers; a limit there counts as one if no container requests or
    limits the resource, as the API server fills it in when it creates the pod.
    """
    inits = f"{spec}.?initContainers.orValue([])"
    always = 'c.?restartPolicy.orValue("") == "Always"'
    each = measure(_requested("c", resource))
    running = f"{spec}.?containers.orValue([]).map(c, {each}).sum()"
    sidecars = f"{inits}.filter(c, {always}).map(c, {each}).sum()"
    alone = f"([0] + {inits}.filter(c, !({always})).map(c, {each})).max()"
    own = f"{spec}.?resources.?requests[?{resource}]"
    asked = measure(f"{own}.orValue({_NONE})")
    limit = f"{spec}.?resources.?limits[?{resource}]"
    parts = f"[{running} + {sidecars}, {alone}].max()"
    filled = f"{limit}.hasValue() && !({_any_container_has(spec, resource)}) ? {measure(f'{limit}.orValue({_NONE})')}"
    whole = f"({own}.hasValue() ? {asked} : {filled} : {parts})"
    overhead = measure(f"{spec}.?overhead[?{resource}].orValue({_NONE})")
    return f"({whole} + {overhead})"


def _any_container_has(spec: str, resource: str) -> str:
    """Return whether any container has a request or a limit for a resource."""
    has = " || ".join(f"c.?resources.?{field}[?{resource}].hasValue()" for field in ("requests", "limits"))
    return " || ".join(
        f"{spec}.?{kind}.orValue([]).exists(c, {has})" for kind in ("containers", "initContainers")
    )


def _requested(container: str, resource: str) -> str:
    """A limit without a request counts as the request."""
    resources = f"{container}.?resources"
    limit = f"{resources}.?limits[?{resource}].orValue({_NONE})"
    return f"{resources}.?requests[?{resource}].orValue({limit})"


def _millis(amount: str) -> str:
    # Rounds up, as the scheduler does; 0.999 instead of 1 allows for the float error of values such as 0.57.
    return (
        f"int([quantity(string({amount})).asApproximateFloat() * 1000.0 + 0.999, {MOST_REQUESTED}.0].min())"
    )


def _whole(amount: str) -> str:
    # Also in bytes no more than an integer holds.
    return f"int([quantity(string({amount})).asApproximateFloat() + 0.999, {MOST_REQUESTED * _MIB}.0].min())"


def shape_title(shape: str) -> str:
    """Return a shape as messages name it."""
    gang = f"{shape}.pods == 1 ? {text(messages.ALONE)} : {fill_template(messages.GANG, pods=integer_string(f'{shape}.pods'))}"
    return fill_template(messages.SHAPE, name=f"{shape}.name", gang=gang, requests=format_requests(shape))


def jobset_pods(item: str) -> str:
    """Return how many pods of a JobSet's replicated job run at once."""
    return f"int({item}.?replicas.orValue(1)) * {child_job_pods(item)}"


def child_job_pods(item: str) -> str:
    """Return how many pods each child Job of a JobSet's replicated job runs at once."""
    spec = f"{item}.?template.?spec"
    parallelism = f"int({spec}.?parallelism.orValue(1))"
    completions = f"int({spec}.?completions.orValue({parallelism}))"
    return f"[{parallelism}, {completions}].min()"


def rayjob_pods(item: str) -> str:
    """Return how many pods a worker group needs: with Ray autoscaling, the fewest that it may have."""
    least = f"int({item}.?minReplicas.orValue(0))"
    most = f"int({item}.?maxReplicas.orValue(2147483647))"
    asked = f"int({item}.?replicas.orValue(0))"
    scales = "object.spec.rayClusterSpec.?enableInTreeAutoscaling.orValue(false)"
    wanted = f"({scales} ? {least} : {asked})"
    replicas = f"({wanted} < {least} ? {least} : [{wanted}, {most}].min())"
    hosts = f"[1, int({item}.?numOfHosts.orValue(1))].max()"
    return f"({item}.?suspend.orValue(false) ? 0 : {replicas} * {hosts})"


_TIER: Final = "variables.tiers[i]"


def tier_numbers() -> str:
    """Return the number of each tier of the cluster's own in the whole ladder."""
    tiers = "params.spec.tiers"
    return f"lists.range(size({tiers})).filter(i, [{tiers}[i]].exists(t, {HERE})).map(i, i + 1)"


def start_tier() -> str:
    """Return the index of the first tier, or -1 if the templates select none or several."""
    return "size(variables.chosen) == 1 ? variables.pools.indexOf(variables.chosen[0]) : -1"


def failed_checks() -> str:
    """Return for each tier the reasons why the job cannot run there, per shape and for all shapes together.

    Tiers above the first tier have none: the job never gets there.
    """
    why = "w.join(" + text(" ") + f') + ({IS_LAST} ? "" : " " + {text(messages.NO_WAY_PAST)})'
    where = fill_template(messages.TIER, number=integer_string("variables.numbers[i]"), pool=f"{_TIER}.pool")
    of_shape = fill_template(
        messages.CANNOT_FALL_BACK, who=shape_title("variables.shapes[j]"), where=where, why=why
    )
    of_all = fill_template(messages.CANNOT_FALL_BACK, who=text(messages.THE_JOB), where=where, why=why)
    found = " + ".join([f"({capacity_check()})", *(f"variables.{link}[i][j]" for link in tier_checks())])
    shapes = f"lists.range(size(variables.shapes)).map(j, [{found}].filter(w, size(w) > 0).map(w, {of_shape})).flatten()"
    job = f"[variables.exceeding[i]].filter(w, size(w) > 0).map(w, {of_all})"
    return (
        "variables.start < 0 ? [] : lists.range(size(variables.tiers)).map(i, "
        f"i < variables.start ? [] : ({shapes} + {job}))"
    )


def end_tier() -> str:
    """Return the tier on which the job's walk ends: a list of its index, or an empty list.

    It ends where the job would be stuck, where the ladder has no further tier, where nodes may be on-demand,
    or where the job may stay indefinitely.
    """
    has_timeout = f"{_TIER}.?procurementTimeout.hasValue()"
    is_on_demand = f"{_TIER}.?facts.?capacity.orValue({text(ON_DEMAND)}) == {text(ON_DEMAND)}"
    stays = f"{_TIER}.?maxFailures.orValue(0) == {UNLIMITED} && ({IS_LAST} || !{has_timeout})"
    ends = f"size(variables.broken[i]) > 0 ? ({IS_LAST} || !{has_timeout}) : ({is_on_demand} || {stays})"
    return (
        "variables.start < 0 ? [] : lists.range(size(variables.tiers))"
        f".filter(i, i >= variables.start && ({ends}))"
    )


def rejection_reasons() -> str:
    """Return why the job cannot reach the end of its ladder; empty if it can or if that is unknown."""
    return "size(variables.end) == 0 ? [] : variables.broken[variables.end[0]]"
