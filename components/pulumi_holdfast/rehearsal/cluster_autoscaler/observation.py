"""Converts the objects of a cluster to the planner's input: nodes, pending pods, and scale-up options. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.quantities import parse_quantity
from pulumi_holdfast.rehearsal.clouds.machines import NodeTemplate
from pulumi_holdfast.rehearsal.cluster_autoscaler.node_groups import NodeGroup
from pulumi_holdfast.rehearsal.cluster_autoscaler.scale_up import (
    NodeInfo,
    Option,
    PodNeeds,
    Resources,
    is_daemons,
    moment,
    needs_of,
    node_of,
    requests_of,
    taint_of,
)

# The kubelet's message on a node that shuts down.
SHUTTING_DOWN: Final = "node is shutting down"


def pending(pods: Iterable[Json]) -> list[PodNeeds]:
    """Return the unschedulable pods, the longest pending first."""
    needs = [needs_of(pod) for pod in pods if not node_of(pod)]
    waiting = [(one.unschedulable_since, one) for one in needs if one.unschedulable_since is not None]
    return [one for _, one in sorted(waiting, key=lambda each: (each[0], each[1].namespace, each[1].name))]


def node_infos(nodes: Iterable[Json], pods: Sequence[Json]) -> list[NodeInfo]:
    """Return the schedulable nodes with their free resources."""
    taken: dict[str, Resources] = {}
    for pod in pods:
        if node_of(pod):
            before = taken.get(node_of(pod), {})
            asked = requests_of(pod)
            taken[node_of(pod)] = {
                name: before.get(name, Fraction(0)) + asked.get(name, Fraction(0))
                for name in {**before, **asked}
            }
    return [_room(node, taken) for node in nodes if not _is_going(node)]


def upcoming(pools: Iterable[NodeGroup], nodes: Iterable[Json]) -> list[NodeInfo]:
    """Return the machines that have not joined the cluster yet."""
    there = {name_of(node) for node in nodes}
    return [
        _new_room(seen.template, one.zone, one.name)
        for seen in pools
        for one in seen.instances
        if one.name not in there
    ]


def options(
    pools: Iterable[NodeGroup], backing_off: Collection[tuple[str, str]], priorities: Mapping[str, int]
) -> list[Option]:
    """Return each pool in each of its zones as an option.

    `backing_off` are the (pool, zone) pairs in backoff; `priorities` are the ranks in ComputeClasses, by pool name.
    """
    return [
        Option(
            pool=seen.pool.id,
            zone=zone,
            room=_new_room(seen.template, zone, f"{seen.template.name} in {zone}"),
            hourly_price=seen.template.hourly_price,
            nodes=sum(one.zone == zone for one in seen.instances),
            spare=seen.template.maximum - len(seen.instances),
            spreads=seen.template.spreads,
            is_in_backoff=(seen.pool.id, zone) in backing_off,
            priority=priorities.get(seen.template.name, 0),
        )
        for seen in pools
        for zone in seen.template.zones
    ]


def class_priorities(classes: Iterable[Json]) -> dict[str, int]:
    """Return the rank of each node pool in its ComputeClass, by pool name."""
    return {
        str(pool): place
        for one in classes
        for place, rule in enumerate(sequence(mapping(one.get("spec")).get("priorities")))
        for pool in sequence(mapping(rule).get("nodepools"))
    }


def empty_nodes(nodes: Iterable[Json], pods: Iterable[Json]) -> set[str]:
    """Return the names of the nodes that run only pods of DaemonSets."""
    busy = {node_of(pod) for pod in pods if not is_daemons(pod)}
    return {name_of(node) for node in nodes} - busy


def _new_room(template: NodeTemplate, zone: str, name: str) -> NodeInfo:
    return NodeInfo(
        name=name,
        labels=template.labels_in(zone),
        taints=tuple(map(taint_of, template.taints)),
        free=_quantities(template.allocatable),
    )


def _room(node: Json, taken: Mapping[str, Resources]) -> NodeInfo:
    metadata, spec = mapping(node.get("metadata")), mapping(node.get("spec"))
    labels = {key: str(value) for key, value in mapping(metadata.get("labels")).items()}
    room = NodeInfo(
        name=name_of(node),
        labels=labels,
        # A starting node is ready soon.
        taints=tuple(taint_of(t) for t in map(mapping, sequence(spec.get("taints"))) if not _is_passing(t)),
        free=_quantities(mapping(mapping(node.get("status")).get("allocatable"))),
        since=moment(metadata.get("creationTimestamp")),
    )
    return room.without(taken.get(room.name, {}))


def _is_going(node: Json) -> bool:
    """Whether a node is cordoned or shuts down."""
    conditions = map(mapping, sequence(mapping(node.get("status")).get("conditions")))
    shuts_down = any(each.get("message") == SHUTTING_DOWN for each in conditions)
    return shuts_down or bool(mapping(node.get("spec")).get("unschedulable"))


def _is_passing(taint: Json) -> bool:
    return str(taint.get("key")).startswith("node.kubernetes.io/")


def _quantities(resources: Mapping[str, object]) -> Resources:
    return {name: parse_quantity(str(quantity)) for name, quantity in resources.items()}
