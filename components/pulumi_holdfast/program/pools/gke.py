"""Reads GKE's node pools, with what GKE adds to their nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import (
    ARCH,
    COMPUTE_CLASS,
    GKE_PROVISIONING,
    GKE_SPOT,
    GKE_SPOT_VALUE,
    ON_DEMAND,
    POOL,
    RESERVED,
    SPOT,
    ZONE,
)
from pulumi_holdfast.ladder.reachability.affinity import ABSENT, LabelFact, LabelValues
from pulumi_holdfast.ladder.reachability.facts import AddedToleration, PoolFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity, Provisioner
from pulumi_holdfast.ladder.taints import GPU, Taint, Toleration
from pulumi_holdfast.program.clusters import clusters_of
from pulumi_holdfast.program.fields import gcp
from pulumi_holdfast.program.pools.admission import tolerations_for
from pulumi_holdfast.program.pools.gke_machines import (
    CLUSTER,
    accelerator_of,
    machines_of,
    pool_limits,
    pool_zones,
    sharing_labels,
)
from pulumi_holdfast.program.pools.pool import (
    LEAST_PRIORITY,
    NO_DRIVER,
    WINDOWS,
    DeclaredPool,
    Machines,
    known_taints,
    taint_of,
)
from pulumi_holdfast.program.pools.refused_pools import refused_by_gke
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    is_object,
    items_at,
    known_items,
    labels_at,
    of_type,
    once,
    text_at,
    whole_number,
)

NODE_POOL: Final = "gcp:container/nodePool:NodePool"

_DEFAULT_POOL: Final = "default-pool"

#: GKE ends such nodes without asking their pods: at any time, after a day at the latest, or after a week.
_PREEMPTIBLE: Final = {"spot": SPOT, "preemptible": SPOT, "flexStart": RESERVED}

#: GKE makes such nodes only for ProvisioningRequests, when it has capacity for all of one at once, and for a week at most.
_QUEUED: Final = "queued"

_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
# GKE's own taints of nodes with Arm processors and of sandboxed nodes. It adds the toleration to pods that select Arm.
_ARM: Final = Taint(key=ARCH, value="arm64")
_ARM_TOLERATION: Final = AddedToleration(toleration=Toleration.of(_ARM), selecting=(ARCH, "arm64"))
_SANDBOX: Final = Taint(key="sandbox.gke.io/runtime", value="gvisor")

_METADATA: Final = "iam.gke.io/gke-metadata-server-enabled"
_TPU_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"


@once
def gke_pools(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """Return the pools of the stack's GKE node pools, and those inside its clusters."""
    clusters = {each.urn: each for each in of_type(resources, CLUSTER)}
    return tuple(
        replace(
            _pool(each, resources),
            resource=clusters.get(each.urn, each),
            labels_path=f"{where}nodeConfig.labels",
            taints_path=f"{where}nodeConfig.taints",
        )
        for where, each in _declared(resources)
    )


@once
def _declared(resources: Sequence[StackResource]) -> tuple[tuple[str, StackResource], ...]:
    """Return the node pools of the stack; those inside a cluster as resources of their own, with where the cluster has them."""
    inline = [pool for each in of_type(resources, CLUSTER) for pool in _inline(each)]
    return (*(("", each) for each in of_type(resources, NODE_POOL)), *inline)


def _inline(cluster: StackResource) -> Iterator[tuple[str, StackResource]]:
    """Yield the pools that a cluster declares itself, and the default pool that it is created with."""
    listed, declared = items_at(cluster.props, "nodePools"), known_items(cluster.declared, "nodePools")
    profiles = [
        (f"nodePools[{index}].", each, declared[index] if index < len(declared) else each)
        for index, each in enumerate(() if listed is UNKNOWN else listed)
    ]
    removed = at(cluster.props, "removeDefaultNodePool"), at(cluster.props, "enableAutopilot")
    if listed is not UNKNOWN and not profiles and True not in removed and UNKNOWN not in removed:
        counted = {"nodeCount": at(cluster.props, "initialNodeCount")}
        default, set_of_it = (
            {key: at(props, key) for key in ("nodeConfig", "nodeLocations")}
            for props in (cluster.props, cluster.declared)
        )
        profiles.append(("", {"name": _DEFAULT_POOL, **default, **counted}, set_of_it))
    for where, profile, inputs in profiles:
        if is_object(profile) and is_object(inputs):
            yield where, replace(cluster, props=profile, inputs=inputs)


def _pool(node_pool: StackResource, resources: Sequence[StackResource]) -> DeclaredPool:
    label = text_at(node_pool.props, "nodeConfig", "labels", POOL)
    declared = text_at(node_pool.props, "name")
    name = declared if isinstance(declared, str) else node_pool.logical_name
    kinds, decided = _capacity_types(node_pool)
    machines, zones = machines_of(node_pool), pool_zones(node_pool, resources)
    limits, most_pods = pool_limits(node_pool, resources), _most_pods(node_pool, resources)
    image = str(text_at(node_pool.props, "nodeConfig", "imageType") or "")
    driver = at(accelerator_of(node_pool), "gpuDriverInstallationConfig", "gpuDriverVersion")
    return DeclaredPool(
        resource=node_pool,
        profile=node_pool.props,
        provisioner=Provisioner.GKE,
        label=label,
        node_pool=name,
        title=f"node pool {name!r}",
        labels_path="",
        taints_path="",
        no_schedule="NO_SCHEDULE",
        facts=PoolFacts(
            name=label if isinstance(label, str) else node_pool.logical_name,
            title=f"node pool {name!r}",
            capacity_types=kinds,
            is_decided=decided,
            labels=_labels(node_pool, zones, is_spot=kinds == frozenset({SPOT})),
            taints=_taints(node_pool, machines),
            machines=_with_most_pods(most_pods, machines.capacities),
            unmodeled=(
                *((WINDOWS,) if "WINDOWS" in image.upper() else ()),
                *gcp.NODE_POOL.unread(node_pool.declared, f"node pool {name!r}"),
            ),
            unmodeled_gpus=(NO_DRIVER,) if driver == "INSTALLATION_DISABLED" else (),
            least_priority=_least_priority(node_pool),
            faults=tuple(refused_by_gke(node_pool, kinds if decided else frozenset(), resources)),
            shares_gpus=at(accelerator_of(node_pool), "gpuSharingConfig") is not None,
            unknown_machine_types=machines.unknown_types,
            limits=limits,
            zones=zones,
            is_compact=True if at(node_pool.props, "placementPolicy", "type") == "COMPACT" else None,
            added_tolerations=_tolerations(node_pool, label, resources),
        ),
    )


def _capacity_types(node_pool: StackResource) -> tuple[frozenset[str], bool]:
    """Return the capacity types that its nodes may have, and whether it is known which of them they have."""
    affinity = text_at(node_pool.props, "nodeConfig", "reservationAffinity", "consumeReservationType")
    if affinity == "SPECIFIC_RESERVATION":
        return frozenset({RESERVED}), True
    queued = at(node_pool.props, "queuedProvisioning", "enabled")
    if queued is True or queued is UNKNOWN:
        return frozenset({_QUEUED} if queued is True else {ON_DEMAND, _QUEUED}), queued is True
    given = {field: at(node_pool.props, "nodeConfig", field) for field in _PREEMPTIBLE}
    certain = frozenset(_PREEMPTIBLE[field] for field, value in given.items() if value is True)
    if certain:
        return certain, True
    unknown = frozenset(_PREEMPTIBLE[field] for field, value in given.items() if value is UNKNOWN)
    return frozenset({ON_DEMAND}) | unknown, not unknown


def _least_priority(node_pool: StackResource) -> int | None:
    """Return the least priority of pods for which it gets its first nodes."""
    scaling = at(node_pool.props, "autoscaling")
    least = at(scaling, "minNodeCount") or at(scaling, "totalMinNodeCount")
    return None if scaling is None or least else LEAST_PRIORITY


def _labels(
    node_pool: StackResource, zones: frozenset[str] | Unknown, *, is_spot: bool
) -> Mapping[str, LabelFact] | Unknown:
    known = labels_at(node_pool.props, "nodeConfig", "labels")
    if known is UNKNOWN:
        return known
    spot = {GKE_SPOT: GKE_SPOT_VALUE, GKE_PROVISIONING: SPOT} if is_spot else {}
    sandbox = {_SANDBOX.key: _SANDBOX.value} if _is_sandboxed(node_pool) else {}
    zone = UNKNOWN if zones is UNKNOWN else LabelValues(values=zones)
    return {
        **known,
        **spot,
        **sandbox,
        ZONE: zone,
        **sharing_labels(accelerator_of(node_pool)),
        **_labels_of_settings(node_pool),
    }


def _labels_of_settings(node_pool: StackResource) -> Mapping[str, LabelFact]:
    """Return the labels by which pods select GKE's metadata server and the topology of TPUs."""
    mode = text_at(node_pool.props, "nodeConfig", "workloadMetadataConfig", "mode")
    served: Mapping[str | Unknown | None, LabelFact] = {"GKE_METADATA": "true", "GCE_METADATA": ABSENT}
    topology = text_at(node_pool.props, "placementPolicy", "tpuTopology")
    metadata = {_METADATA: served[mode]} if mode in served else {}
    return {**metadata, **({_TPU_TOPOLOGY: topology} if topology is not None else {})}


def _is_sandboxed(node_pool: StackResource) -> bool:
    return at(node_pool.props, "nodeConfig", "sandboxConfig") is not None


def _most_pods(node_pool: StackResource, resources: Sequence[StackResource]) -> int | Unknown | None:
    """Return how many pods a node of the pool may have: its own number, or that of its cluster."""
    own = whole_number(at(node_pool.props, "maxPodsPerNode"))
    if own is not None:
        return own
    of_clusters = [
        whole_number(at(cluster.props, "defaultMaxPodsPerNode"))
        for cluster in clusters_of(node_pool, "gcp", resources)
    ]
    return next((most for most in of_clusters if most is not None), None)


def _with_most_pods(
    most: int | Unknown | None, machines: tuple[MachineCapacity, ...] | Unknown
) -> tuple[MachineCapacity, ...] | Unknown:
    """Return the machines with this number of pods on a node; GKE's default is that of the table."""
    if machines is UNKNOWN or not isinstance(most, int):
        return machines
    return tuple(replace(machine, max_pods=most) for machine in machines)


def _taints(node_pool: StackResource, machines: Machines) -> tuple[Taint, ...] | Unknown:
    listed = items_at(node_pool.props, "nodeConfig", "taints")
    if listed is UNKNOWN or machines.capacities is UNKNOWN:
        return UNKNOWN
    known = known_taints([_taint(each) for each in listed])
    if known is UNKNOWN:
        return known
    # GKE taints nodes with GPUs by itself, unless the pool has a taint with that key.
    gpu = (GPU,) if machines.have_gpus and all(each.key != GPU.key for each in known) else ()
    behavior = at(node_pool.props, "nodeConfig", "taintConfig", "architectureTaintBehavior")
    is_arm = any(machine.labels.get(ARCH) == "arm64" for machine in machines.capacities)
    arm = (_ARM,) if is_arm and behavior != "NONE" else ()
    sandbox = (_SANDBOX,) if _is_sandboxed(node_pool) else ()
    return (*known, *gpu, *arm, *sandbox)


def _taint(value: Value) -> Taint | Unknown | None:
    taint = taint_of(value)
    return (
        replace(taint, effect=_EFFECTS.get(taint.effect, taint.effect)) if isinstance(taint, Taint) else taint
    )


def _tolerations(
    node_pool: StackResource, label: str | Unknown | None, resources: Sequence[StackResource]
) -> tuple[AddedToleration, ...] | Unknown:
    added = tolerations_for(label, Provisioner.GKE, resources)
    if added is UNKNOWN:
        return UNKNOWN
    compute_class = text_at(node_pool.props, "nodeConfig", "labels", COMPUTE_CLASS)
    # GKE adds a toleration to pods that select a ComputeClass.
    by_class = (
        (AddedToleration(toleration=Toleration(key=COMPUTE_CLASS)),) if isinstance(compute_class, str) else ()
    )
    return (*added, _ARM_TOLERATION, *by_class)
