"""Reads Karpenter's NodePools, on AWS, on Azure and simulated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import (
    ARCH,
    CAPACITY_TYPE,
    GPU_RESOURCE,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    POOL,
    RESERVED,
    SPOT,
    ZONE,
)
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue, regions, zones_of
from pulumi_holdfast.ladder.reachability.affinity import OTHERS, UNDECLARED, LabelFact, LabelValues
from pulumi_holdfast.ladder.reachability.facts import Limits, PoolFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import KubeletSettings, machine_capacity
from pulumi_holdfast.ladder.reachability.node_labels import Provisioner, machine_labels
from pulumi_holdfast.ladder.reachability.node_pool_requirements import (
    NodePoolRequirement,
    NodePoolRequirements,
)
from pulumi_holdfast.ladder.taints import Taint
from pulumi_holdfast.program.fields import unread
from pulumi_holdfast.program.pools.admission import tolerations_for
from pulumi_holdfast.program.pools.node_classes import (
    NODE_CLASSES,
    class_of,
    fabric_adapters,
    faults_of_class,
    is_on_aws,
    kubelet_of,
    missing_class,
    open_settings,
    relaxes_min_values,
    short_life,
    without_auto_mode,
)
from pulumi_holdfast.program.pools.pool import DeclaredPool, Machines, PoolLabel, known_taints, taint_of
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    count,
    cpu_millis,
    is_list,
    items_at,
    labels_at,
    memory_mib,
    once,
    pools_on_ladders,
    text_at,
    whole_number,
)

#: Karpenter may launch any of these if a NodePool requires none: a NodePool without a capacity type is not on-demand.
CAPACITY_TYPES: Final = frozenset({ON_DEMAND, SPOT, RESERVED})

#: Labels of machine types whose values the table has all.
_OF_ALL_TYPES: Final = frozenset({ARCH, OS})

#: The clouds that have a table of zones.
_WITH_ZONES: Final = frozenset({"aws", "azure"})

#: In place of the key of a requirement that is not known yet.
_UNKNOWN_KEY: Final = ""

#: The label with the name of the NodePool.
NODE_POOL: Final = "karpenter.sh/nodepool"

#: Labels that Karpenter's providers know, and that no table and no NodePool has.
WELL_KNOWN: Final = (
    ZONE,
    "topology.kubernetes.io/region",
    "topology.k8s.aws/zone-id",
    "node.kubernetes.io/windows-build",
    "karpenter.k8s.aws/ec2nodeclass",
    "karpenter.k8s.aws/instance-tenancy",
    "karpenter.k8s.aws/placement-group-id",
    "karpenter.k8s.aws/placement-group-partition",
    "karpenter.k8s.aws/capacity-reservation-id",
    "karpenter.k8s.aws/capacity-reservation-type",
    "karpenter.k8s.aws/capacity-reservation-interruptible",
    "karpenter.azure.com/aksnodeclass",
    "kubernetes.azure.com/cluster",
    "kubernetes.azure.com/mode",
    "kubernetes.azure.com/scalesetpriority",
    "kubernetes.azure.com/priority",
    "kubernetes.azure.com/os-sku",
    "kubernetes.azure.com/fips_enabled",
    "kubernetes.azure.com/sku-cpu",
    "kubernetes.azure.com/sku-memory",
)

#: Of simulated nodes only.
_CLASS_OF_KWOK: Final = "karpenter.kwok.sh/kwoknodeclass"
#: Domains of labels that Karpenter and its providers keep for themselves.
_KEPT_DOMAINS: Final = ("karpenter.sh", *NODE_CLASSES)


def is_node_pool(type_token: str) -> bool:
    """Whether the type is a NodePool of any API version."""
    return type_token.startswith("kubernetes:karpenter.sh/") and type_token.endswith(":NodePool")


@once
def node_pools(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    """Return the stack's NodePools."""
    return tuple(resource for resource in resources if is_node_pool(resource.type))


def karpenter_pools(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """Return the pools of the stack's NodePools."""
    return tuple(
        _pool(node_pool, label, resources)
        for node_pool in node_pools(resources)
        for label in pool_labels(node_pool, resources)
    )


def _pool(node_pool: StackResource, label: PoolLabel, resources: Sequence[StackResource]) -> DeclaredPool:
    group = text_at(node_pool.props, "spec", "template", "spec", "nodeClassRef", "group")
    provisioner, cloud = NODE_CLASSES.get(group if isinstance(group, str) else "", (Provisioner.EKS, ""))
    name = name_of(node_pool)
    kinds, decided = capacity_types(node_pool)
    adapters = fabric_adapters(node_pool, resources)
    read = _requirements(node_pool, name)
    node_class = class_of(node_pool, resources)
    on_ec2 = node_class if is_on_aws(node_pool) else None
    settings = kubelet_of(node_pool, node_class, resources)
    machines, zones = _machines(read, cloud, provisioner, settings, efa=adapters), _zones(read, provisioner)
    limits = _limits(node_pool, machines)
    return DeclaredPool(
        resource=node_pool,
        profile=node_pool.props,
        provisioner=provisioner,
        label=label,
        node_pool=name,
        title=f"NodePool {name!r}",
        labels_path="spec.template.metadata.labels",
        taints_path="spec.template.spec.taints",
        facts=PoolFacts(
            name=label if isinstance(label, str) else name,
            title=f"NodePool {name!r}",
            capacity_types=kinds,
            is_decided=decided,
            has_reservation=_has_reservation(on_ec2),
            labels=_labels(
                node_pool, read, kinds, provisioner, _keys_of_types(cloud, provisioner, but=machines)
            ),
            taints=_taints(node_pool),
            machines=machines.capacities,
            unknown_machine_types=machines.unknown_types,
            undecided_by=machines.undecided_by,
            unsatisfiable=machines.unsatisfiable,
            min_values={} if read is UNKNOWN or relaxes_min_values(node_pool, resources) else read.min_values,
            is_static=at(node_pool.props, "spec", "replicas") is not None,
            limits=limits,
            zones=zones,
            faults=(
                *(faults_of_class(node_pool, on_ec2, resources) if on_ec2 else ()),
                *without_auto_mode(node_pool, resources),
            ),
            unmodeled=(
                *missing_class(node_pool, resources),
                *open_settings(node_pool, node_class, resources),
                *_unknown_labels(node_pool, cloud, provisioner),
                *_unknown_zones(read, cloud),
                *short_life(node_pool),
                *unread(node_pool),
            ),
            added_tolerations=tolerations_for(label, provisioner, resources),
        ),
    )


def name_of(node_pool: StackResource) -> str:
    """Return its name in the cluster; its resource's name if that is not known."""
    declared = text_at(node_pool.props, "metadata", "name")
    return declared if isinstance(declared, str) else node_pool.logical_name


def pool_labels(node_pool: StackResource, resources: Sequence[StackResource]) -> Sequence[PoolLabel]:
    """Return the pool labels of its nodes: of the values that its requirements allow, Karpenter sets the one that pods select.

    Where they allow any value, or any but some (`Exists`, `NotIn`), these are the ones that the program's ladders name; the set
    itself if they name none of it.
    """
    read = _requirements(node_pool, name_of(node_pool))
    if read is UNKNOWN:
        written = text_at(node_pool.props, "spec", "template", "metadata", "labels", POOL)
        return (UNKNOWN if written is None else written,)
    allowed = read.allowed.get(POOL)
    if POOL in read.unknown_keys:
        return (UNKNOWN,)
    if _UNKNOWN_KEY in read.unknown_keys and (allowed is None or allowed.is_complement):
        return (UNKNOWN,)
    if allowed is None:
        return (None,)
    named = pools_on_ladders(resources) if allowed.is_complement else allowed.values
    return sorted(each for each in named if each in allowed) or (allowed,)


def capacity_types(node_pool: StackResource) -> tuple[frozenset[str], bool]:
    """Return the capacity types that its requirements allow, and whether all requirements on them are known."""
    read = _requirements(node_pool, name_of(node_pool))
    if read is UNKNOWN:
        return CAPACITY_TYPES, False
    allowed = read.allowed.get(CAPACITY_TYPE)
    kinds = (
        CAPACITY_TYPES if allowed is None else frozenset(kind for kind in CAPACITY_TYPES if kind in allowed)
    )
    return kinds, not {CAPACITY_TYPE, _UNKNOWN_KEY} & read.unknown_keys


def may_buy_spot(node_pool: StackResource) -> bool:
    """Whether its requirements certainly allow spot."""
    kinds, decided = capacity_types(node_pool)
    return decided and SPOT in kinds


def requirements(node_pool: StackResource) -> Iterator[Value]:
    """Yield its requirements; a label for the capacity type counts as one, as it does for Karpenter."""
    label = at(node_pool.props, "spec", "template", "metadata", "labels", CAPACITY_TYPE)
    if label is UNKNOWN:
        yield UNKNOWN
    elif label is not None:
        yield {"key": CAPACITY_TYPE, "operator": "In", "values": [label]}
    listed = items_at(node_pool.props, "spec", "template", "spec", "requirements")
    if listed is UNKNOWN:
        yield UNKNOWN
    else:
        yield from listed


def _has_reservation(node_class: StackResource | None) -> bool | Unknown:
    """Return whether its node class names a capacity reservation, without which its nodes are never reserved ones."""
    terms = (
        UNKNOWN
        if node_class is None
        else items_at(node_class.props, "spec", "capacityReservationSelectorTerms")
    )
    return UNKNOWN if terms is UNKNOWN else bool(terms)


def _taints(node_pool: StackResource) -> tuple[Taint, ...] | Unknown:
    """Return the taints of its nodes; startup taints are removed before pods are scheduled."""
    listed = items_at(node_pool.props, "spec", "template", "spec", "taints")
    return UNKNOWN if listed is UNKNOWN else known_taints([taint_of(each) for each in listed])


def _requirements(node_pool: StackResource, name: str) -> NodePoolRequirements | Unknown:
    """Return its requirements, those that its labels make included; UNKNOWN if not even their number is known."""
    listed = items_at(node_pool.props, "spec", "template", "spec", "requirements")
    labels = labels_at(node_pool.props, "spec", "template", "metadata", "labels")
    if listed is UNKNOWN or labels is UNKNOWN:
        return UNKNOWN
    made = {**labels, NODE_POOL: name}
    return NodePoolRequirements.of(
        [
            *(
                NodePoolRequirement(key=key, operator="In", values=None if value is UNKNOWN else (value,))
                for key, value in made.items()
            ),
            *(found for found in map(_requirement, listed) if found is not None),
        ]
    )


def _requirement(value: Value) -> NodePoolRequirement | None:
    """Return one requirement; None if it has no key, so that the API server rejects it."""
    key, operator, given = (at(value, part) for part in ("key", "operator", "values"))
    if value is UNKNOWN or key is UNKNOWN:
        return NodePoolRequirement(key=_UNKNOWN_KEY, operator="", values=None)
    if not isinstance(key, str):
        return None
    listed = given if is_list(given) else ()
    is_known = isinstance(operator, str) and given is not UNKNOWN and UNKNOWN not in listed
    least = whole_number(at(value, "minValues"))
    return NodePoolRequirement(
        key=key,
        operator=operator if isinstance(operator, str) else "",
        values=tuple(each if isinstance(each, str) else str(each) for each in listed) if is_known else None,
        min_values=least if isinstance(least, int) else None,
    )


def _machines(
    read: NodePoolRequirements | Unknown,
    cloud: str,
    provisioner: Provisioner,
    settings: KubeletSettings | None,
    *,
    efa: bool | Unknown,
) -> Machines:
    """Return the machine types that its requirements allow, by any label that follows from the type."""
    if read is UNKNOWN or not cloud or {_UNKNOWN_KEY, INSTANCE_TYPE} & read.unknown_keys:
        return Machines(capacities=UNKNOWN)
    table = machine_catalogue(cloud)
    selected = read.select(table.values(), provisioner)
    types = read.allowed.get(INSTANCE_TYPE)
    named = () if types is None or types.is_complement else types.values
    unknown_types = tuple(sorted(name for name in named if name not in table))
    if not selected.machines and not unknown_types:
        unknown_types = tuple(_of_no_table(read, table.values(), provisioner))
    is_empty = not selected.machines and not unknown_types
    return Machines(
        capacities=tuple(
            machine_capacity(each, provisioner, efa=efa, settings=settings) for each in selected.machines
        ),
        unknown_types=unknown_types,
        undecided_by=selected.undecided_by,
        unsatisfiable=read.contradictions(provisioner) or (_keys(read) if is_empty else ()),
    )


def _of_no_table(
    read: NodePoolRequirements, table: Iterable[Machine], provisioner: Provisioner
) -> Iterator[str]:
    """Yield the values that it requires of labels of machine types, and that no type of the table has.

    Tables leave out types, such as those with other accelerators than GPUs of NVIDIA.
    """
    known: dict[str, set[object]] = {}
    for machine in table:
        for key, value in machine_labels(machine, provisioner).items():
            known.setdefault(key, set()).add(value)
    for key, allowed in sorted(read.allowed.items()):
        is_named = allowed.values and not allowed.is_complement and not all(map(str.isdigit, allowed.values))
        if is_named and key in known.keys() - _OF_ALL_TYPES and not allowed.values & known[key]:
            yield f"machines with {key}={', '.join(sorted(allowed.values))}"


def _unknown_labels(node_pool: StackResource, cloud: str, provisioner: Provisioner) -> Iterator[str]:
    """Yield the requirements on labels of Karpenter's domains that its provider is not known to have.

    Karpenter rejects the NodePool if the domain is its provider's own; those of another one choose no machine.
    """
    if not cloud:
        return
    known = {CAPACITY_TYPE, _CLASS_OF_KWOK, *WELL_KNOWN, *_keys_of_types(cloud, provisioner)}
    for each in requirements(node_pool):
        key = at(each, "key")
        if isinstance(key, str) and key.partition("/")[0] in _KEPT_DOMAINS and key not in known:
            yield f"its node class's provider is not known to have the label {key}, on which it has a requirement"


def _keys_of_types(cloud: str, provisioner: Provisioner, but: Machines | None = None) -> Iterable[str]:
    """Return the labels that follow from a machine type, `but` those that machines have themselves, because all are known.

    A provider that is not known may have any label.
    """
    if not cloud:
        return (OTHERS,)
    is_known = but is not None and but.are_known
    return () if is_known else machine_labels(next(iter(machine_catalogue(cloud).values())), provisioner)


def _unknown_zones(read: NodePoolRequirements | Unknown, cloud: str) -> Iterator[str]:
    """Yield the zones that it names and no table has: a typo, or a zone that is newer or not of a region."""
    named = None if read is UNKNOWN else read.allowed.get(ZONE)
    if named is None or named.is_complement or cloud not in _WITH_ZONES:
        return
    unknown = sorted(zone for zone in named.values if not _may_exist(zone, cloud))
    if unknown:
        yield f"there was no zone {', '.join(unknown)} when the table of machines was made"


def _may_exist(zone: str, cloud: str) -> bool:
    """Whether a table has a zone, or has no zones of its region."""
    region = zone[:-1] if cloud == "aws" else zone.rpartition("-")[0]
    return region in regions(cloud) and (not zones_of(region) or zone in zones_of(region))


def _keys(read: NodePoolRequirements) -> tuple[str, ...]:
    return tuple(sorted(key for key in read.allowed if key not in {NODE_POOL, POOL}))


def _zones(read: NodePoolRequirements | Unknown, provisioner: Provisioner) -> frozenset[str] | Unknown | None:
    """Return the zones that its nodes may be in; None if it takes any."""
    if read is UNKNOWN or {ZONE, _UNKNOWN_KEY} & read.unknown_keys:
        return UNKNOWN
    zones = read.zones(provisioner)
    if zones is None:
        return UNKNOWN if ZONE in read.allowed else None
    return zones.values


def _labels(
    node_pool: StackResource,
    read: NodePoolRequirements | Unknown,
    kinds: frozenset[str],
    provisioner: Provisioner,
    of_types: Iterable[str],
) -> Mapping[str, LabelFact] | Unknown:
    """Return the labels of its nodes: those it sets, and those of which Karpenter sets the value that pods select.

    Karpenter makes no node for pods that select a label which it does not know from the NodePool or the machine type. A DaemonSet
    that selects any of the values counts on all of its nodes: Karpenter compares it with the NodePool before it has pods. `of_types`
    are the labels whose values follow from machine types that are not known.
    """
    written = labels_at(node_pool.props, "spec", "template", "metadata", "labels")
    if written is UNKNOWN:
        return UNKNOWN
    if read is UNKNOWN:
        # Any label may be among its requirements.
        return {**written, OTHERS: UNKNOWN}
    # Karpenter takes a label that contradicts a requirement for absent, and its nodes have it all the same: it buys for pods
    # that the scheduler then refuses.
    contradicted = [key for key in written if key in read.allowed and read.allowed[key].is_empty]
    return {
        OTHERS: UNKNOWN if _UNKNOWN_KEY in read.unknown_keys else UNDECLARED,
        **dict.fromkeys((*WELL_KNOWN, *of_types), UNKNOWN),
        **{
            key: values if values.only is None else values.only
            for key, values in {**read.allowed, CAPACITY_TYPE: LabelValues(values=kinds)}.items()
        },
        ZONE: read.zones(provisioner) or UNKNOWN,
        **dict.fromkeys((*read.unknown_keys, *contradicted), UNKNOWN),
    }


def _limits(node_pool: StackResource, machines: Machines) -> Limits:
    limits, replicas = (at(node_pool.props, "spec", part) for part in ("limits", "replicas"))
    # The components here make it of their `maxNodes`.
    is_own = "holdfast:" in "".join(node_pool.urn.split("::")[2:3])
    if limits is UNKNOWN or replicas is UNKNOWN:
        return Limits(nodes=UNKNOWN)
    if replicas is not None:
        return Limits(nodes=count(replicas), set_by="spec.replicas")
    gpus = count(at(limits, GPU_RESOURCE))
    return Limits(
        nodes=count(at(limits, "nodes")),
        nodes_are_exact=False,
        set_by="maxNodes" if is_own else "spec.limits",
        cpu_millis=cpu_millis(at(limits, "cpu")),
        memory_mib=memory_mib(at(limits, "memory")),
        gpus=gpus if machines.have_gpus else None,
    )
