"""The facts about pools and tiers that reachability checks use, and how FallbackPolicies and the outputs of stacks store them.

Any single fact may be UNKNOWN; the others are still checked. What is stored may be of an earlier release, or written by hand:
what is missing or of a wrong type is not known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Json, JsonValue, Unknown, mapping, sequence
from pulumi_holdfast.ladder.labels import ON_DEMAND, SPOT, CapacityType
from pulumi_holdfast.ladder.ladder import UNLIMITED
from pulumi_holdfast.ladder.quantities import parse_quantity
from pulumi_holdfast.ladder.reachability.affinity import ABSENT, OTHERS, LabelFact, LabelValues
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.ladder.reachability.messages import MessageTemplate
from pulumi_holdfast.ladder.reachability.shape import MAX_PODS_PER_NODE, Resources, is_in_bytes
from pulumi_holdfast.ladder.taints import Taint, Toleration


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a pool may grow; None: unlimited. Resources are counted over whole machines, as Karpenter does.

    `nodes_in_zone` limits the nodes of each zone. Unless `nodes_are_exact`, one plan may exceed `nodes`, except 0: Karpenter
    checks that limit only before it plans. `set_by` is the field for `nodes`.
    """

    nodes: int | Unknown | None = None
    nodes_in_zone: int | Unknown | None = None
    nodes_are_exact: bool = True
    set_by: str = "maxNodes"
    cpu_millis: int | Unknown | None = None
    memory_mib: int | Unknown | None = None
    gpus: int | Unknown | None = None

    @property
    def amounts(self) -> tuple[int, ...]:
        """The limits that are set and known."""
        return tuple(limit for limit in self._all() if isinstance(limit, int))

    def uses_of(self, machine: MachineCapacity) -> tuple[int, ...]:
        """How much of each of `amounts` one machine of this type uses."""
        whole = machine.capacity
        each = (1, whole.cpu_millis, whole.memory_mib, whole.gpus)
        return tuple(use for use, limit in zip(each, self._all(), strict=True) if isinstance(limit, int))

    def _all(self) -> tuple[int | Unknown | None, ...]:
        return (self.nodes, self.cpu_millis, self.memory_mib, self.gpus)

    def nodes_of(self, machine: MachineCapacity) -> int | Unknown | None:
        """How many machines of this type there may be; None: any number."""
        allowed = (
            self.nodes,
            _whole(self.cpu_millis, machine.capacity.cpu_millis),
            _whole(self.memory_mib, machine.capacity.memory_mib),
            _whole(self.gpus, machine.capacity.gpus),
        )
        known = [limit for limit in allowed if isinstance(limit, int)]
        if UNKNOWN in allowed:
            # One limit of 0 decides, whatever the others are.
            return 0 if 0 in known else UNKNOWN
        return min(known, default=None)


def _whole(limit: int | Unknown | None, each: int) -> int | Unknown | None:
    return limit // each if isinstance(limit, int) and each > 0 else limit if limit is UNKNOWN else None


@dataclass(frozen=True, kw_only=True)
class AddedToleration:
    """A toleration that admission or the cloud adds to a pool's pods.

    `for_gpu_pods`: only to pods that request GPUs; `selecting`: only to pods whose node selector has this label.
    """

    toleration: Toleration
    for_gpu_pods: bool = False
    selecting: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class PoolFacts:
    """A pool as a program declares it, with what the cloud adds.

    `title` names it in messages. `capacity_types` are those its nodes may have; unless `is_decided`, an unknown value may
    still exclude some of them. Reserved ones need a capacity reservation: `has_reservation`. `taints` are all taints of its nodes, those of the cloud included; `labels` those that pods
    may select by, except those that follow from the machine type. `machines` is UNKNOWN where none of its types could be read;
    `unknown_machine_types` are types that are in no machine table; `undecided_by` names requirements that may exclude some of
    `machines`, `unsatisfiable` those that exclude every machine. Karpenter makes nodes only while the types that fit have at least `min_values` values of a label. A pool that
    `is_static` has as many nodes as `limits` allow, whatever pods need. `is_compact`: its nodes are placed close to each
    other, None if that is not known.
    Of a pool that is `planned_as` one machine type, the cloud may start any type, whatever the autoscaler plans.
    Where a pool `shares_gpus`, a container may request only one. One that `is_stopped` makes no nodes, nor does one with
    `faults`; for pods below `least_priority` it makes none. `unmodeled` are reasons why no
    check can tell whether its nodes run pods, `unmodeled_gpus` whether they run pods with GPUs. `added_tolerations` are given to pods that select this pool, by admission or by the cloud.
    """

    name: str
    title: str
    capacity_types: frozenset[str]
    is_decided: bool = True
    has_reservation: bool | Unknown = True
    labels: Mapping[str, LabelFact] | Unknown = field(default_factory=dict[str, LabelFact])
    taints: tuple[Taint, ...] | Unknown = ()
    machines: tuple[MachineCapacity, ...] | Unknown = ()
    unknown_machine_types: tuple[str, ...] = ()
    undecided_by: tuple[str, ...] = ()
    unsatisfiable: tuple[str, ...] = ()
    min_values: Mapping[str, int] = field(default_factory=dict[str, int])
    is_static: bool = False
    is_compact: bool | None = None
    planned_as: str = ""
    shares_gpus: bool = False
    is_stopped: bool = False
    faults: tuple[MessageTemplate, ...] = ()
    least_priority: int | None = None
    unmodeled: tuple[str, ...] = ()
    unmodeled_gpus: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    zones: frozenset[str] | Unknown | None = None
    added_tolerations: tuple[AddedToleration, ...] | Unknown = ()

    def added_for(self, requests: Resources, selector: Mapping[str, str]) -> tuple[Toleration, ...]:
        """The tolerations that are added to pods with these requests and this node selector."""
        if self.added_tolerations is UNKNOWN:
            return ()
        return tuple(
            added.toleration
            for added in self.added_tolerations
            if (requests.gpus or not added.for_gpu_pods)
            and (added.selecting is None or selector.get(added.selecting[0]) == added.selecting[1])
        )

    def labels_on(self, machine: MachineCapacity) -> Mapping[str, LabelFact]:
        """What is known of the labels of its nodes of one type; empty if not even the pool's own are known."""
        if self.labels is UNKNOWN:
            return {}
        of_type = {key: ABSENT if value is None else value for key, value in machine.labels.items()}
        return {**self.labels, **of_type}

    @property
    def is_on_demand(self) -> bool | Unknown:
        """Whether it makes on-demand nodes and never spot ones."""
        if ON_DEMAND not in self.capacity_types:
            return False
        if not self.is_decided:
            return UNKNOWN
        return SPOT not in self.capacity_types


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What the stack of another cluster says of a namespace.

    `ladder` are the pools of the namespace's ladder there, None without such a namespace. `home_checkpoints` is where jobs
    keep their checkpoints in the ladder's own cluster, UNKNOWN until the update, `checkpoints` where they do there; None if no
    program says it. `reaches_checkpoints`: whether the network of that cluster leads to those of the ladder's own. `registry` is
    the end of the only registry's name that an isolated network there leads to, None where it leads to all.
    """

    stack: str
    ladder: tuple[str, ...] | None
    home_checkpoints: str | Unknown | None = None
    checkpoints: str | None = None
    reaches_checkpoints: bool | None = None
    registry: str | None = None


@dataclass(frozen=True, kw_only=True)
class TierFacts:
    """A tier of a ladder, as far as it is known.

    `node_pools` are the known pools of that name: several where NodePools share the label, none where no resource makes
    one. `may_be_external`: something that cannot be seen from here, such as another stack, may make it. `ended_at` is when
    its reserved capacity ended, None if it has not. `cluster` is the other cluster that has the pool, empty for the ladder's
    own: no job arrives on a tier elsewhere, because that cluster may not answer. `exported` is what its stack says beside the
    pool, None if nothing is known of it, UNKNOWN until the update.
    """

    number: int
    pool: str | Unknown
    max_failures: int | Unknown | None = None
    has_timeout: bool | Unknown = False
    node_pools: tuple[PoolFacts, ...] = ()
    may_be_external: bool = False
    ended_at: datetime | None = None
    cluster: str = ""
    exported: Exported | Unknown | None = None


_MIB: Final = 2**20
_MILLI: Final = 1000


def read_tiers(policy: Json) -> tuple[TierFacts, ...]:
    """The tiers of a FallbackPolicy with what it says about their pools; none if it has none.

    It does not say which tolerations admission adds to the pods of a tier.
    """
    tiers = map(mapping, sequence(mapping(policy.get("spec")).get("tiers")))
    return tuple(
        TierFacts(
            number=number,
            pool=_text(tier.get("pool")),
            max_failures=_pieces(tier.get("maxFailures"), least=UNLIMITED),
            has_timeout="procurementTimeout" in tier,
            node_pools=_node_pools(tier),
            cluster=_text(tier.get("cluster")),
            exported=read_exported(mapping(tier.get("exported"))),
        )
        for number, tier in enumerate(tiers, 1)
    )


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _node_pools(tier: Json) -> tuple[PoolFacts, ...]:
    """The pool of a tier; none for a tier in another cluster without facts."""
    if "cluster" in tier and "facts" not in tier:
        return ()
    facts = mapping(tier.get("facts"))
    found = read_pool_facts(_text(tier.get("pool")), facts)
    taints = () if "cluster" in tier else tuple(map(_taint, sequence(facts.get("taints"))))
    return (replace(found, taints=taints, added_tolerations=UNKNOWN) if taints else found,)


def _taint(written: JsonValue) -> Taint:
    taint = mapping(written)
    return Taint(
        key=_text(taint.get("key")), value=_text(taint.get("value")), effect=_text(taint.get("effect"))
    )


def read_pool_facts(name: str, facts: Json) -> PoolFacts:
    """The facts of a pool. Its taints are left out: admission gives the pods that select it the tolerations."""
    capacity = facts.get("capacity")
    is_known = capacity in list(CapacityType)
    machines = [_machine(mapping(each)) for each in sequence(facts.get("machines"))]
    known = tuple(each for each in machines if each is not None)
    return PoolFacts(
        name=name,
        title=f"pool {name}",
        capacity_types=frozenset({str(capacity)}) if is_known else frozenset({SPOT, ON_DEMAND}),
        is_decided=is_known,
        labels=_labels(facts),
        machines=known if known and len(known) == len(machines) else UNKNOWN,
        limits=Limits(nodes=UNKNOWN if (most := _pieces(facts.get("maxNodes"))) is None else most),
    )


def read_exported(exported: Json, *, home_checkpoints: str | Unknown | None = None) -> Exported | None:
    """What the stack of another cluster says of a namespace, as a tier stores it; None if nothing is known."""
    if not exported:
        return None
    ladder, checkpoints, reaches, registry = (
        exported.get(name) for name in ("ladder", "checkpoints", "reachesCheckpoints", "registry")
    )
    return Exported(
        stack=str(exported.get("stack")),
        ladder=None if ladder is None else tuple(str(pool) for pool in sequence(ladder)),
        home_checkpoints=home_checkpoints,
        checkpoints=checkpoints if isinstance(checkpoints, str) else None,
        reaches_checkpoints=reaches if isinstance(reaches, bool) else None,
        registry=registry if isinstance(registry, str) else None,
    )


def _labels(facts: Json) -> Mapping[str, LabelFact]:
    """Its labels; UNKNOWN for all that are not listed where the facts have none."""
    labels = mapping(facts.get("labels"))
    found: dict[str, LabelFact] = {key: each for key, each in labels.items() if isinstance(each, str)}
    for key, values in mapping(facts.get("labelValues")).items():
        listed = frozenset(each for each in sequence(values) if isinstance(each, str))
        found[key] = LabelValues(values=listed) if listed else UNKNOWN
    return found if labels else {**found, OTHERS: UNKNOWN}


def _machine(machine: Json) -> MachineCapacity | None:
    """One of its machine types; None if what it has for pods cannot be read."""
    cpu, memory = (parse_quantity(machine.get(name)) for name in ("cpu", "memory"))
    if not cpu or not memory:
        return None
    name, accelerator, pods = (machine.get(each) for each in ("name", "accelerator", "pods"))
    room = Resources(
        cpu_millis=int(cpu * _MILLI),
        memory_mib=int(memory / _MIB),
        gpus=_pieces(machine.get("gpus")) or 0,
        efa=_pieces(machine.get("efa")) or 0,
        devices={
            device: int(parse_quantity(amount) / (_MIB if is_in_bytes(device) else 1))
            for device, amount in mapping(machine.get("devices")).items()
        },
    )
    return MachineCapacity(
        name=name if isinstance(name, str) else "its machines",
        capacity=room,
        allocatable=room,
        accelerator=accelerator if isinstance(accelerator, str) else None,
        max_pods=MAX_PODS_PER_NODE if (most := _pieces(pods)) is None else most,
        has_all_devices=machine.get("allDevices") is True,
    )


def _pieces(value: JsonValue, *, least: int = 0) -> int | None:
    """A number of pieces; None without one. A state of Pulumi has only floats."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
        return None
    return int(value) if float(value).is_integer() else None
