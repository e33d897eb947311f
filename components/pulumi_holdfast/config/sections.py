"""The sections that the stacks of every cloud share: the document, mirrors, the controller, pools, reservations."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, ClassVar, Final, TypeVar

from pydantic import Field, PlainSerializer, PlainValidator

from pulumi_holdfast.config import versions
from pulumi_holdfast.config.clusters import AcceptedClusterSection, OtherClusterSection
from pulumi_holdfast.config.fields import (
    Allowed,
    ChartSource,
    DnsLabel,
    ImageSource,
    KubernetesVersion,
    Section,
    Text,
    error_with_fix,
)
from pulumi_holdfast.config.namespace import NamespaceSection
from pulumi_holdfast.config.storage import STORAGE_FIELD, VolumeSection
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.windows import ALWAYS, TIME_ALLOWED, CapacityWindow, format_time, parse_time


def _moment(value: object) -> datetime:
    # YAML parses an unquoted time as a timestamp.
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    found = parse_time(value) if isinstance(value, str) else None
    if found is None:
        raise error_with_fix('Write a date and a time in UTC, such as "2026-12-01T11:30:00Z".')
    return found


Moment = Annotated[
    datetime,
    PlainValidator(_moment, json_schema_input_type=str),
    PlainSerializer(format_time, return_type=str),
    Allowed(TIME_ALLOWED, '"2026-12-08T11:30:00Z"'),
]

#: A host, a path, and a tag, a digest or both: a complete reference for a container runtime.
_IMAGE: Final = (
    r"(?=[^/]*[.:])[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+"
    r"(?=[:@])(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
ImageReference = Annotated[
    str,
    Field(max_length=512),
    Text(
        "an image with its registry, and its tag or digest",
        "registry.example.com/fallback-controller:0.1.0",
        _IMAGE,
        "Write the registry's host, the path and a tag, such as registry.example.com/fallback-controller:0.1.0.",
    ),
]
RetainDays = Annotated[int, Field(ge=1, le=3650)]

#: The text of the field with the Kubernetes version, on every cloud.
VERSION_TEXT: Final = (
    "the minor version of Kubernetes; older ones lack the admission policies that add tolerations"
)
ACCEPTS_FROM_TEXT: Final = "the clusters whose jobs may run here ([below](#acceptsfrom))"
POOLS_TEXT: Final = "the pools, exactly one of them with `default: true` ([below](#pools))"
RETAIN_TEXT: Final = "how many days overwritten and deleted objects are kept; current objects never expire"
COMPACT_TEXT: Final = "nodes close together; requires exactly one zone in `zones`; not on reserved pools. Changing it, or the zone, replaces the pool"
ROLL_OUT_TEXT: Final = (
    "`true` replaces drifted machines; jobs on them restart from their checkpoints. Remove it afterward"
)


N = TypeVar("N", bound=Section)
C = TypeVar("C", bound=Section)


class ClusterSection(Section):
    """The control plane of a cluster that the stack creates."""

    version: KubernetesVersion = Field(default=versions.KUBERNETES, description=VERSION_TEXT)


class ExistingCluster(Section):
    """A cluster that the stack uses and does not own: it registers neither a cluster nor a network."""

    otherwise: ClassVar[str] = (
        "Leave it out: the owner of an existing cluster sets it; without existing the stack creates a cluster."
    )


def network_of(new: type[N], of_cluster: type[C]) -> Callable[[dict[str, object]], N | C]:
    """The default of a document's network: a new one; or, beside an existing cluster, that cluster's."""
    return lambda values: (of_cluster if isinstance(values.get("cluster"), ExistingCluster) else new)()


class JobMetricsStore(StrEnum):
    """Whose Prometheus has the metrics of jobs."""

    CLOUD = "cloud"
    OPERATOR = "operator"


class MonitoringSection(Section):
    """The monitoring of the fallback controller and of jobs."""

    dashboard: bool = Field(
        default=False,
        description='`true` for a ConfigMap with a dashboard for Grafana and, with `jobs`, a second one of jobs, labeled `grafana_dashboard: "1"`',
    )
    alerts: bool = Field(
        default=False,
        description="`true` for a PrometheusRule and a ServiceMonitor of the Prometheus operator",
    )
    release: DnsLabel | None = Field(
        default=None,
        description="the value of the label `release` on both, by which the Prometheus of kube-prometheus-stack selects them",
        examples=["kube-prometheus-stack"],
    )
    jobs: JobMetricsStore | None = Field(
        default=None,
        description="the metrics of jobs, from NVIDIA's dcgm-exporter and kube-state-metrics, and the controller's beside them: `cloud` "
        "stores them in Amazon's, Google's or Azure's managed service for Prometheus, `operator` in the Prometheus of an operator that is "
        "installed first ([graphs](operations.md#graphs-of-jobs)). By default neither is installed",
        examples=["cloud"],
    )
    scrapers: Annotated[tuple[DnsLabel, ...], Field(max_length=20)] = Field(
        default=("monitoring",),
        description="the namespaces whose pods reach the metrics of the controller and of operators; no others do",
        examples=["[monitoring]"],
    )


class ControllerSection(Section):
    """The fallback controller of a stack."""

    fixes: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("returnAfter", "failures"),
        "Move it to a namespace's fallback section: each team chooses for its jobs.",
    )

    image: ImageReference | None = Field(
        default=None,
        description="an image of your own that contains the controller, used unchanged; by default the public image of Python, from "
        "`mirror.images` if that is given, with the controller's program in ConfigMaps",
    )
    webhook_secret: DnsLabel | None = Field(
        default=None,
        description="a Secret in `holdfast-system` whose key `url` is a webhook that accepts Slack's JSON; it is notified of moves, "
        "deadlines that will be missed and jobs given up",
        examples=["holdfast-webhook"],
    )
    monitoring: MonitoringSection = Field(
        default_factory=MonitoringSection,
        description="what shows the metrics of the controller and of jobs",
        examples=["{dashboard: true, alerts: true}"],
    )


class ReservationSection(Section):
    """Machines that are reserved, and when: with `ends`, jobs leave them before.

    `taken_back_early` is the time before the end from which jobs leave: the cloud reclaims the machines, and a job needs
    time to move.
    """

    fixes: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("start", "startDate"), "Write begins."),
        **dict.fromkeys(("end", "endDate"), "Write ends."),
        "count": "Write maxNodes of the pool: how many machines the reservation has.",
    }
    taken_back_early: ClassVar[timedelta] = timedelta(minutes=10)

    begins: Moment | None = Field(
        default=None, description="when the machines are available; until then jobs skip the tier"
    )
    ends: Moment | None = Field(
        default=None, description="when the reservation ends; jobs leave 10 minutes before, on AWS 45"
    )

    @property
    def window(self) -> CapacityWindow:
        """When jobs can use the machines."""
        return CapacityWindow(
            begins=self.begins, ends=None if self.ends is None else self.ends - self.taken_back_early
        )


#: Names of other tools for the price cap of spot machines.
PRICE_CAPS: Final = ("spotMaxPrice", "spot_max_price", "maxPrice")

_TAINTS_ARE_KNOWN: Final = "Leave it out: a pool's taints follow from its capacity and its GPUs."


class PoolSection(Section):
    """Nodes of one capacity type."""

    fixes: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("spot", "priority"), "Write capacity: spot, or capacity: on-demand."),
        "reserved": "Write capacity: reserved, and the reservation.",
        **dict.fromkeys(
            ("maxInstances", "maxSize", "max_size", "maxCount", "limits", "replicas"), "Write maxNodes."
        ),
        **dict.fromkeys(
            ("minNodes", "minSize", "min_size", "minCount", "initialNodeCount"),
            "Leave it out: a pool scales down to zero nodes.",
        ),
        **dict.fromkeys(("taint", "taints", "nodeTaints"), _TAINTS_ARE_KNOWN),
        **dict.fromkeys(
            ("diskSize", "disk_size", "diskSizeGb", "diskSizeGiB", "volumeSize"), "Write diskGiB."
        ),
        "requirements": "Write capacity, zones, and the field with the machine types.",
    }

    name: DnsLabel = Field(
        description="the value of the node label `holdfast.dev/pool`, which ladders and jobs refer to",
        examples=["a100-spot"],
    )
    capacity: CapacityType = Field(
        description="spot pools are tainted `karpenter.sh/capacity-type=spot:NoSchedule` (on GKE with [its own taint](#gcp-only)), "
        "[reserved ones](#reserved-capacity) `karpenter.sh/capacity-type=reserved:NoSchedule` on every cloud",
        examples=["spot"],
    )
    max_nodes: int = Field(
        ge=1,
        le=1000,
        description="the approximate maximum number of nodes; the CPUs and GPUs of as many of the largest machines are limits too",
        examples=["8"],
    )
    default: bool = Field(
        default=False,
        description="`true` on exactly one on-demand pool without GPUs: pods without selectors run there",
    )

    def pool_of(self, machines: Sequence[Machine], reservation: ReservationSection | None = None) -> Pool:
        """The pool for the rules in `scheduling`, with its known machines."""
        return Pool(
            name=self.name,
            capacity=self.capacity,
            has_gpus=any(machine.gpus for machine in machines),
            max_nodes=self.max_nodes,
            is_default=self.default,
            window=ALWAYS if reservation is None else reservation.window,
        )


class KarpenterPoolSection(PoolSection):
    """Nodes of one capacity type."""

    fixes: ClassVar[Mapping[str, str]] = {
        **PoolSection.fixes,
        **dict.fromkeys(
            PRICE_CAPS,
            "Leave it out: Karpenter has no field that holds a price cap. Write maxPrice on the tiers of the ladder that use the "
            "pool.",
        ),
    }


class CloudMirror(Section):
    """Where charts and images come from; by default from their upstream registries."""

    charts: ChartSource | None = Field(
        default=None, description="the source of the operators' charts; by default each chart's upstream"
    )
    images: ImageSource | None = Field(
        default=None,
        description="a registry's host and path, such as `registry.example.com/mirror`; by default each image's registry",
    )


class PlatformDocument(Section):
    """What the document under holdfast:platform has on every cloud, and on this machine."""

    fallback: ControllerSection = Field(
        default_factory=ControllerSection,
        description="the controller that moves jobs along their ladders ([below](#fallback))",
        examples=["{image: registry.example.com/fallback-controller:0.1.0}"],
    )
    namespaces: tuple[NamespaceSection, ...] = Field(
        default=(),
        description="the training namespaces, each with its ladder ([below](#namespaces))",
        examples=["[{name: vision, ladder: [{pool: NAME}]}]"],
    )
    clusters: tuple[OtherClusterSection, ...] = Field(
        default=(),
        description="the other clusters of ladders ([below](#clusters))",
        examples=["[{name: us-east-2, stack: my-organization/holdfast/aws-us-east-2}]"],
    )

    @property
    def bound_to_zones(self) -> Mapping[str, Mapping[str, str]]:
        """The volumes that bind the jobs of a namespace to a zone, by namespace and volume, each with the zone as nodes' labels write it."""
        return {}


#: The clouds allow 50 tags or more, some of which are Holdfast's and the cloud's own.
MOST_TAGS: Final = 30

#: The highest budget in USD an hour: a higher one is a mistake.
HIGHEST_BUDGET: Final = 1_000_000


class CloudDocument(PlatformDocument):
    """The document under holdfast:platform of a stack on any cloud."""

    protected: bool = Field(
        default=True,
        description="Pulumi cannot destroy the cluster, the key of its secrets and the checkpoints; use `false` in disposable "
        "environments",
    )
    budget: float | None = Field(
        default=None,
        gt=0,
        le=HIGHEST_BUDGET,
        description="the most that the stack may cost with full pools, in USD an hour; a stack that may cost more, or that has a pool "
        "without a known price, is refused ([costs](economics.md#what-a-stack-costs))",
        examples=["400"],
    )
    mirror: CloudMirror = Field(
        default_factory=CloudMirror,
        description="where charts and images come from",
        examples=["{images: registry.example.com/mirror}"],
    )
    tags: Mapping[str, str] = Field(
        default_factory=dict[str, str],
        max_length=MOST_TAGS,
        description="on everything that the cloud bills: the tags of AWS and Azure, the labels of Google Cloud. Also on what controllers "
        "create: machines, their disks and, on AWS, volumes of claims",
        examples=["{cost-center: ml}"],
    )
    storage: Annotated[tuple[VolumeSection, ...], STORAGE_FIELD] = ()
    accepts_from: tuple[AcceptedClusterSection, ...] = Field(default=(), description=ACCEPTS_FROM_TEXT)

    @property
    def keeps_job_metrics(self) -> bool:
        """Whether the cloud's managed service for Prometheus has the metrics of jobs."""
        return self.fallback.monitoring.jobs is JobMetricsStore.CLOUD

    @property
    def bound_to_zones(self) -> Mapping[str, Mapping[str, str]]:
        """The volumes that bind the jobs of a namespace to a zone, by namespace and volume, each with the zone as nodes' labels write it."""
        zones = {volume.name: self.zone_of(volume) for volume in self.storage}
        return {
            namespace.name: {
                volume.name: zone
                for volume in self.storage
                if namespace.name in volume.namespaces and (zone := zones[volume.name]) is not None
            }
            for namespace in self.namespaces
        }

    def zone_of(self, volume: VolumeSection) -> str | None:
        """The zone of a volume, as nodes' labels write it; None for one in all zones."""
        return volume.zone

    def protects(self, volume: VolumeSection) -> bool:
        """Whether what the stack creates for a volume cannot be deleted with it."""
        return self.protected and not volume.delete_with_stack
