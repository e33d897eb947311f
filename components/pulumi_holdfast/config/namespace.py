"""The sections of a training namespace: its ladder, how jobs move along it, the shapes of its jobs, and its quota."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, ClassVar, Final, Literal, cast

from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    ValidationInfo,
    field_validator,
)

from pulumi_holdfast.config.fields import (
    Allowed,
    Cidr,
    DnsLabel,
    Duration,
    DurationOrNever,
    Section,
    error_with_fix,
)
from pulumi_holdfast.ladder.ladder import (
    HIGHEST_PRICE,
    MOST_FAILURES,
    MOST_TIERS,
    UNLIMITED,
    Failures,
    Ladder,
    Tier,
)
from pulumi_holdfast.ladder.machines import Architecture
from pulumi_holdfast.ladder.quantities import (
    CPU_ALLOWED,
    MEMORY_ALLOWED,
    AmountError,
    format_cpu,
    format_memory,
    parse_cpu,
    parse_memory,
)
from pulumi_holdfast.ladder.quotas import (
    BESIDE,
    OBJECTS,
    OBJECTS_PER_NODE,
    STORAGE_MIB,
    Quota,
    QuotaSettings,
    quota_of,
)
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary
from pulumi_holdfast.ladder.reachability.shape import (
    LEAST,
    LONGEST_ACCELERATOR,
    MAX_PODS_PER_NODE,
    MOST_ADAPTERS,
    MOST_DEVICES,
    MOST_GPUS,
    MOST_SELECTED,
    MOST_SHAPES,
    MOST_TOLERATIONS,
    WIDEST_GANG,
    Placement,
    Resources,
    Shape,
    format_device,
    parse_device,
)
from pulumi_holdfast.ladder.taints import Toleration

_MOST_IN_A_QUOTA: Final = 100_000

#: The highest priority of a PriorityClass that is not Kubernetes' own.
_HIGHEST_PRIORITY: Final = 1_000_000_000


def _amount(value: object, parse: Callable[[str], int]) -> int:
    try:
        # YAML parses an unquoted 48 as a number.
        return parse(value if isinstance(value, str) else str(value))
    except AmountError as error:
        raise error_with_fix(error.fix) from None


def _devices(value: object) -> Mapping[str, int]:
    if not isinstance(value, Mapping):
        raise error_with_fix("Write, for example, `devices: {ephemeral-storage: 200Gi}`.")
    given = cast("Mapping[object, object]", value)
    if len(given) > MOST_DEVICES:
        raise error_with_fix("Remove some of them.")
    return {str(name): _amount(given[name], partial(parse_device, str(name))) for name in given}


def _format_devices(devices: Mapping[str, int]) -> dict[str, str]:
    return {name: format_device(name, amount) for name, amount in devices.items()}


Cpu = Annotated[
    int,
    PlainValidator(lambda value: _amount(value, parse_cpu), json_schema_input_type=int | float | str),
    PlainSerializer(format_cpu, return_type=str),
    Allowed(CPU_ALLOWED, "48"),
]
Memory = Annotated[
    int,
    PlainValidator(lambda value: _amount(value, parse_memory), json_schema_input_type=str),
    PlainSerializer(format_memory, return_type=str),
    Allowed(MEMORY_ALLOWED, "512Gi"),
]
Devices = Annotated[
    Mapping[str, int],
    PlainValidator(_devices, json_schema_input_type=dict[str, int | str]),
    PlainSerializer(_format_devices, return_type=dict[str, str]),
    Allowed(
        f"a mapping of up to {MOST_DEVICES} resources to their amounts: a number, or bytes with their unit",
        "{ephemeral-storage: 200Gi}",
    ),
]


class TolerationSection(Section):
    """A toleration as pods spell it, with the same defaults."""

    key: str = Field(default="", description="the key of a taint; none for any", examples=["team"])
    operator: Literal["Equal", "Exists"] = Field(default="Equal", description="how the value is compared")
    value: str = Field(default="", description="the value of the taint", examples=["vision"])
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        default="", description="the effect of the taint; none for any", examples=["NoSchedule"]
    )

    @field_validator("value")
    @classmethod
    def _of_equal(cls, value: str, info: ValidationInfo) -> str:
        if value and info.data.get("operator") == "Exists":
            raise error_with_fix("Remove it, or write operator: Equal.")
        return value

    def as_toleration(self) -> Toleration:
        """The toleration for the rules in `scheduling`."""
        return Toleration(
            key=self.key, value=None if self.operator == "Exists" else self.value, effect=self.effect
        )


class ShapeSection(Section):
    """One shape of job: a gang of pods that run together, each with these requests."""

    fixes: ClassVar[Mapping[str, str]] = {
        "nvidia.com/gpu": "Write gpus.",
        "requests": "Write cpu, memory and gpus of one pod.",
        "parallelism": "Write pods.",
        "replicas": "Write pods.",
    }

    name: DnsLabel = Field(description="a name, which verdicts refer to", examples=["finetune"])
    pods: int = Field(default=1, ge=1, le=WIDEST_GANG, description="the size of the gang", examples=["4"])
    cpu: Cpu = Field(default=LEAST.cpu_millis, description="CPUs of each pod")
    memory: Memory = Field(default=LEAST.memory_mib, description="memory of each pod")
    gpus: int = Field(default=0, ge=0, le=MOST_GPUS, description="GPUs of each pod", examples=["8"])
    efa: int = Field(
        default=0,
        ge=0,
        le=MOST_ADAPTERS,
        description="Elastic Fabric Adapters of each pod, on AWS: as many as the smallest machine of every tier has ([pools with "
        "adapters](operations.md#pools-with-fabric-adapters))",
        examples=["4"],
    )
    accelerator: str | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_ACCELERATOR,
        description="the GPU model, such as `a100` or `h100`, with its memory if that matters (`a100-80gb`), or as Google Cloud "
        "spells it (`nvidia-tesla-a100`); by default any. Tiers with other models cannot run the shape",
        examples=["a100"],
    )
    devices: Devices = Field(
        default_factory=dict[str, int],
        description="other resources of each pod, as pods request them: devices in pieces (`rdma/ib: 1`), `ephemeral-storage` and "
        "`hugepages-…` with their unit. `cpu`, `memory`, GPUs and adapters have fields of their own",
    )
    selector: Mapping[str, str] = Field(
        default_factory=dict[str, str],
        max_length=MOST_SELECTED,
        description="node labels that the pods select beside their pool. Labels of the capacity type are not allowed, because a move "
        "removes them",
        examples=["{kubernetes.io/arch: amd64}"],
    )
    tolerations: tuple[TolerationSection, ...] = Field(
        default=(),
        max_length=MOST_TOLERATIONS,
        description="what the pods tolerate, as pods spell it, beside what admission adds",
        examples=["[{key: team, operator: Exists}]"],
    )
    architectures: tuple[Architecture, ...] = Field(
        default=(),
        max_length=2,
        description="those that the images run on. A pool with machines of both is proved only if this, or `selector`, says which the "
        "pods can use",
        examples=["[amd64]"],
    )
    same_placement: Placement | None = Field(
        default=None,
        description="all pods of the gang run in one `zone`, or in one `hostGroup`, machines that the cloud places close to each other. "
        "The pack proves it for pools that declare it (GKE's compact placement, AKS' proximity placement groups)",
    )

    def as_shape(self) -> Shape:
        """The shape for the rules in `scheduling`."""
        return Shape(
            name=self.name,
            pods=self.pods,
            requests=Resources(
                cpu_millis=self.cpu,
                memory_mib=self.memory,
                gpus=self.gpus,
                efa=self.efa,
                devices=dict(self.devices),
            ),
            accelerator=self.accelerator,
            selector=dict(self.selector),
            tolerations=tuple(each.as_toleration() for each in self.tolerations),
            architectures=self.architectures,
            same_placement=self.same_placement,
        )


class FallbackSection(Section):
    """How the jobs of a training namespace move along their ladder; the controller has defaults for missing fields."""

    fixes: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("maxFailures", "procurementTimeout"), "Write it on each tier of the ladder."
    )

    failures: Failures | None = Field(
        default=None,
        description="what counts toward `maxFailures`: `any` failure, the default, or only `evictions`, which leaves errors of the "
        "program to the job's own limit",
    )
    outage_window: Duration | None = Field(
        default=None,
        description="losses within this time after the first one count as the same failure; `4m` by default",
    )
    application_failures: int | None = Field(
        default=None,
        ge=UNLIMITED,
        le=MOST_FAILURES,
        description="how many failures of its program a job may have on the last tier before the controller gives it up, `5` by "
        "default; `-1`: any number",
        examples=["5"],
    )
    give_up_after: Duration | None = Field(
        default=None,
        description="how long a job waits for capacity on the last tier before the controller gives it up; 15m or more, which a node may "
        "take to start; by default it waits forever",
        examples=["24h"],
    )
    failure_window: Duration | None = Field(
        default=None,
        description="older failures no longer count toward `maxFailures` and `applicationFailures`; with a `maxFailures` of at most 100; by default all count",
        examples=["24h"],
    )
    return_after: DurationOrNever | None = Field(
        default=None,
        description="how long a job stays on a tier before the controller tries better ones again, `1h` by default, or `never`; not on a "
        "ladder of one tier",
    )
    hold_timeout: Duration | None = Field(
        default=None,
        description="how long to wait for a better tier's capacity before the attempt ends, `15m` by default; the job keeps running "
        "meanwhile; not with `returnAfter: never`",
        examples=["10m"],
    )
    start_timeout: Duration | None = Field(
        default=None,
        description="how long scheduled pods may take to start before an Event warns about it, `15m` by default",
        examples=["30m"],
    )
    restart_cost: Duration | None = Field(
        default=None,
        description="the longest time from the loss of a job's machines until it has its earlier progress again, where capacity is "
        "available, `15m` by default; jobs with a [deadline of their own](fallback.md#a-job-with-a-deadline) keep enough time for it",
        examples=["12m"],
    )
    deadline: Duration | None = Field(
        default=None,
        description="time after a job's creation from which a failure moves it directly to the last tier, without a failback; none by "
        "default",
        examples=["48h"],
    )


class QuotaSection(Section):
    """The most that the pods of a training namespace may use; defaults follow from the pools of its ladder."""

    cpu: Cpu | None = Field(
        default=None,
        description="CPUs that the namespace's pods may request together (`requests.cpu`); by default the capacity of the ladder's pools: "
        f"the sum of `maxNodes` × the CPUs of the largest machine, plus {BESIDE}",
        examples=["400"],
    )
    memory: Memory | None = Field(
        default=None,
        description="memory that they may request together (`requests.memory`); by default the capacity of the ladder's pools, plus "
        f"{format_memory(BESIDE * LEAST.memory_mib)}",
        examples=["2Ti"],
    )
    gpus: int | None = Field(
        default=None,
        ge=0,
        le=_MOST_IN_A_QUOTA,
        description="GPUs that the namespace's pods may request together (`requests.nvidia.com/gpu`); by default the capacity of the "
        "ladder's pools: the sum of `maxNodes` × the GPUs of the largest machine; `0` on a ladder without GPUs",
        examples=["64"],
    )
    pods: int | None = Field(
        default=None,
        ge=1,
        le=_MOST_IN_A_QUOTA,
        description="pods that may exist at the same time; finished pods do not count; by default the capacity of the ladder's pools, one "
        f"pod per CPU and at most {MAX_PODS_PER_NODE} per node, plus {BESIDE}",
        examples=["500"],
    )
    storage: Memory | None = Field(
        default=None,
        description="disks that its volume claims may request together (`requests.storage`); by default "
        f"{format_memory(STORAGE_MIB)}, and as much again for each of the ladder's `maxNodes`",
        examples=["10Ti"],
    )
    objects: int | None = Field(
        default=None,
        ge=1,
        le=_MOST_IN_A_QUOTA,
        description="JobSets that may exist at the same time, also finished ones, and as many RayJobs, RayClusters and ConfigMaps "
        f"(`count/…`); twice `pods` more of Jobs, pods, Services and volume claims; by default {OBJECTS}, and {OBJECTS_PER_NODE} for each "
        "of the ladder's `maxNodes`",
        examples=["1000"],
    )
    enforced: bool = Field(default=True, description="`false`: no quota; the policies warn about it")

    def as_asked(self) -> QuotaSettings:
        """The quota for the rules in `scheduling`."""
        return QuotaSettings(
            enforced=self.enforced,
            cpu_millis=self.cpu,
            memory_mib=self.memory,
            gpus=self.gpus,
            pods=self.pods,
            storage_mib=self.storage,
            objects=self.objects,
        )


def _peer(value: str) -> str:
    return TypeAdapter[str](Cidr if "/" in value else DnsLabel).validate_python(value)


#: A namespace or addresses outside of the cluster.
Peer = Annotated[
    str,
    AfterValidator(_peer),
    Allowed("the name of a namespace, or a block of IPv4 addresses such as 10.20.0.0/16", "mlflow"),
]
_Peers = Annotated[tuple[Peer, ...], Field(max_length=100)]


class NetworkSection(Section):
    """What reaches the pods of a training namespace, and what they reach, beside what every job needs."""

    fixes: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("allowEgress", "egress"), "Write allowTo."),
        **dict.fromkeys(("allowIngress", "ingress"), "Write allowFrom."),
    }

    allow_from: _Peers = Field(
        default=(),
        description="namespaces, and addresses outside of the cluster, that reach the pods on all ports",
        examples=["[monitoring]"],
    )
    allow_to: _Peers = Field(
        default=(),
        description="namespaces, and addresses outside of the cluster, that the pods reach on all ports. A wide block leaves out "
        "169.254.0.0/16 and 168.63.129.16, where machines get metadata and credentials",
        examples=["[mlflow, 10.20.0.0/16]"],
    )
    enforced: bool = Field(
        default=True, description="`false`: no NetworkPolicy; everything in the cluster reaches the pods"
    )


class TierSection(Section):
    """One tier of a ladder."""

    fixes: ClassVar[Mapping[str, str]] = {
        "maxRestarts": "Write maxFailures; a job keeps its own restart limit."
    }

    pool: str = Field(
        description="the name of a pool; each pool once in a ladder; GPU and CPU pools are not mixed",
        examples=["NAME"],
    )
    cluster: DnsLabel | None = Field(
        default=None,
        description="the cluster of the pool, one of [`clusters`](#clusters), for a tier between the first and the last; it needs "
        "`procurementTimeout`",
        examples=["us-east-2"],
    )
    max_failures: int | None = Field(
        default=None,
        ge=UNLIMITED,
        le=MOST_FAILURES,
        description="how many failures a job may have on the tier: it moves at the last of them (`0` counts as `1`); `-1`: any number. A "
        "spot pool may be last only with `-1`, which keeps jobs on spot indefinitely",
        examples=["5"],
    )
    procurement_timeout: Duration | None = Field(
        default=None,
        description="how long to wait for the tier's capacity; Karpenter replaces a machine that does not join the cluster after 15 "
        "minutes, so a shorter time leaves the tier for one broken machine",
    )
    price: float | None = Field(
        default=None,
        gt=0,
        le=HIGHEST_PRICE,
        description="what one of the tier's nodes costs per hour, in the same currency on all tiers; the "
        "[ledger](fallback.md#what-a-job-costs) of each job uses it",
        examples=["9.83"],
    )
    max_price: float | None = Field(
        default=None,
        gt=0,
        le=HIGHEST_PRICE,
        description="while one of the tier's nodes costs more per hour, the tier has no capacity ([limits of "
        "cost](fallback.md#limits-of-cost)); not below `price`, and not on the last tier",
        examples=["4.5"],
    )

    def as_tier(self) -> Tier:
        """The tier for the rules in `scheduling`."""
        return Tier(
            pool=self.pool,
            cluster=self.cluster or "",
            max_failures=self.max_failures,
            procurement_timeout=self.procurement_timeout,
            price=self.price,
            max_price=self.max_price,
        )


class NamespaceSection(Section):
    """A training namespace: the ladder of its jobs, their shapes, and their quota."""

    fixes: ClassVar[Mapping[str, str]] = {"jobs": "Write shapes: users submit jobs later, with kubectl."}

    name: DnsLabel = Field(description="not a namespace of Kubernetes or of an operator", examples=["vision"])
    ladder: tuple[TierSection, ...] = Field(
        max_length=MOST_TIERS, description="the tiers in the order of failover; the last is on-demand"
    )
    fallback: FallbackSection = Field(
        default_factory=FallbackSection,
        description="how jobs move along the ladder ([below](#how-jobs-move-along-their-ladder))",
        examples=["{returnAfter: 1h}"],
    )
    shapes: tuple[ShapeSection, ...] = Field(
        default=(),
        max_length=MOST_SHAPES,
        description="the shapes of its jobs ([below](#shapes))",
        examples=["[{name: finetune, pods: 4, cpu: 48, memory: 512Gi, gpus: 8}]"],
    )
    quota: QuotaSection = Field(
        default_factory=QuotaSection,
        description="how much of the pools its jobs may use together ([below](#quota))",
        examples=["{gpus: 64}"],
    )
    highest_priority: int = Field(
        default=0,
        ge=0,
        le=_HIGHEST_PRIORITY,
        description="the highest priority of its pods: the API server refuses pods with a higher PriorityClass",
        examples=["1000"],
    )
    network: NetworkSection = Field(
        default_factory=NetworkSection,
        description="what reaches its pods, and what they reach ([tenants](tenants.md#the-network))",
        examples=["{allowTo: [mlflow, 10.20.0.0/16]}"],
    )

    @property
    def pools_here(self) -> tuple[str, ...]:
        """The pools of its ladder, without those of other clusters."""
        return tuple(tier.pool for tier in self.ladder if tier.cluster is None)

    def as_ladder(self) -> Ladder:
        """The ladder for the rules in `scheduling`."""
        section = self.fallback
        return Ladder(
            tiers=tuple(tier.as_tier() for tier in self.ladder),
            failures=section.failures,
            outage_window=section.outage_window,
            give_up_after=section.give_up_after,
            application_failures=section.application_failures,
            failure_window=section.failure_window,
            return_after=section.return_after,
            hold_timeout=section.hold_timeout,
            start_timeout=section.start_timeout,
            deadline=section.deadline,
            restart_cost=section.restart_cost,
        )

    def as_shapes(self) -> tuple[Shape, ...]:
        """The shapes for the rules in `scheduling`."""
        return tuple(shape.as_shape() for shape in self.shapes)

    def as_quota(self, pools: Mapping[str, PoolSummary]) -> Quota | None:
        """The quota for a stack with these pools; None for no quota."""
        used = [pools[pool] for pool in self.pools_here if pool in pools]
        return quota_of(self.quota.as_asked(), used, self.as_shapes())
