"""What every node of a node pool is like, and how many there may be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from holdfast.scheduling.json import Json, JsonValue
from holdfast.scheduling.labels import ARCH, INSTANCE_TYPE, OS, ZONE
from holdfast.simulator.clouds.gcp.nodes.machine_types import (
    accelerator_of,
    capacity_of,
    machine_of,
    type_name,
)
from holdfast.simulator.clouds.gcp.nodes.places import cluster_name, node_config, region_of, zones_of
from holdfast.simulator.clouds.gcp.nodes.reserved import allocatable
from holdfast.simulator.clouds.machines import Machine
from holdfast.simulator.clouds.state import CloudObject, Inventory
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

LocationPolicy: TypeAlias = Literal["ANY", "BALANCED"]

REGION: Final = "topology.kubernetes.io/region"
GKE: Final = "cloud.google.com"
PROVISIONING: Final = f"{GKE}/gke-provisioning"
_EFFECTS: Final[Mapping[str, str]] = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
# As in the cost model: a spot machine costs a tenth.
_SPOT_PRICE: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class NodeTemplate:
    """The nodes of one pool.

    `labels`, `taints`, `capacity` and `allocatable` are those of each; `minimum` and `maximum` count the whole pool, of
    which `initial` nodes come with it; `is_autoscaled`: whether the autoscaler changes how many there are.
    """

    pool: str
    name: str
    cluster: str
    project: str
    zones: tuple[str, ...]
    labels: Mapping[str, str]
    taints: tuple[Json, ...]
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    initial: int
    minimum: int
    maximum: int
    is_autoscaled: bool
    location_policy: LocationPolicy
    is_spot: bool
    hourly_price: float

    @property
    def spreads(self) -> bool:
        """Whether the zone with the fewest nodes gets the next."""
        return self.location_policy == "BALANCED"

    def labels_in(self, zone: str) -> Mapping[str, str]:
        """Return the labels of the pool's nodes in a zone, but for that with the node's own name."""
        return {**self.labels, ZONE: zone, REGION: region_of(zone), "topology.gke.io/zone": zone}

    def machine(self, name: str, zone: str) -> Machine:
        """Return a machine of the pool."""
        return Machine(
            name=name,
            provider_id=f"gce://{self.project}/{zone}/{name}",
            labels={**self.labels_in(zone), "kubernetes.io/hostname": name},
            capacity=self.capacity,
            taints=self.taints,
            allocatable=self.allocatable,
        )


def template_of(pool: CloudObject, inventory: Inventory) -> NodeTemplate:
    """Return what the nodes of a pool are like."""
    config = node_config(pool)
    zones = zones_of(pool, inventory)
    capacity = capacity_of(config, pods=_number(pool.outputs.get("maxPodsPerNode")))
    scaling = mapping(pool.inputs.get("autoscaling"))
    minimum = _limit(scaling, "Min", len(zones))
    fixed = _number(pool.inputs.get("nodeCount")) or _number(pool.inputs.get("initialNodeCount"))
    initial = max(fixed * len(zones), minimum)
    return NodeTemplate(
        pool=pool.id,
        name=_pool_name(pool),
        cluster=cluster_name(pool),
        project=str(pool.outputs.get("project") or "rehearsal"),
        zones=zones,
        labels=_labels(pool, config),
        taints=_taints(config),
        capacity=capacity,
        allocatable=allocatable(type_name(config), capacity),
        initial=initial,
        minimum=minimum if scaling else initial,
        maximum=_limit(scaling, "Max", len(zones)) if scaling else initial,
        is_autoscaled=bool(scaling),
        location_policy="ANY" if scaling.get("locationPolicy") == "ANY" else "BALANCED",
        is_spot=bool(config.get("spot")),
        hourly_price=machine_of(config).hourly_price * (_SPOT_PRICE if config.get("spot") else 1),
    )


def _pool_name(pool: CloudObject) -> str:
    return str(pool.outputs.get("name") or pool.id.rpartition("/")[2])


def _limit(scaling: Json, which: Literal["Min", "Max"], zones: int) -> int:
    """Return a limit of the whole pool, which may be given as one for each zone."""
    total = scaling.get(f"total{which}NodeCount")
    each = _number(scaling.get(f"{which.lower()}NodeCount"))
    return each * zones if total is None else _number(total)


def _number(value: JsonValue) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _labels(pool: CloudObject, config: Json) -> Mapping[str, str]:
    """Return the labels GKE gives to the nodes of a pool, and those that the pool asks for."""
    machine = machine_of(config)
    accelerator, gpus = accelerator_of(config)
    metadata_server = mapping(config.get("workloadMetadataConfig")).get("mode") == "GKE_METADATA"
    return {
        ARCH: machine.arch,
        OS: "linux",
        INSTANCE_TYPE: type_name(config),
        f"{GKE}/gke-nodepool": _pool_name(pool),
        f"{GKE}/machine-family": type_name(config).partition("-")[0],
        f"{GKE}/gke-boot-disk": str(config.get("diskType") or "pd-balanced"),
        f"{GKE}/gke-container-runtime": "containerd",
        f"{GKE}/gke-os-distribution": "cos",
        PROVISIONING: _provisioning(config),
        **({f"{GKE}/gke-spot": "true"} if config.get("spot") else {}),
        **({f"{GKE}/gke-preemptible": "true"} if config.get("preemptible") else {}),
        **({f"{GKE}/gke-accelerator": accelerator} if gpus and accelerator else {}),
        **({"iam.gke.io/gke-metadata-server-enabled": "true"} if metadata_server else {}),
        **{key: str(value) for key, value in mapping(config.get("labels")).items()},
    }


def _provisioning(config: Json) -> str:
    return "spot" if config.get("spot") else "preemptible" if config.get("preemptible") else "standard"


def _taints(config: Json) -> tuple[Json, ...]:
    """Return the taints of a pool's nodes as nodes spell them: all there are, GKE's own among them."""
    given = config.get("effectiveTaints") or config.get("taints")
    return tuple(_taint(mapping(each)) for each in sequence(given))


def _taint(taint: Json) -> Json:
    value = {"value": taint["value"]} if taint.get("value") else {}
    effect = str(taint.get("effect"))
    return {"key": taint.get("key"), **value, "effect": _EFFECTS.get(effect, effect)}
