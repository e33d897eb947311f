"""GKE's node pools: what it and its provider refuse, and what they replace a pool for."""

from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.scheduling.json import Json, JsonValue
from holdfast.scheduling.machines import machine_catalogue
from holdfast.simulator.clouds.catalogue import Making, Rules
from holdfast.simulator.clouds.gcp.names import project
from holdfast.simulator.clouds.gcp.node_account import no_account
from holdfast.simulator.clouds.gcp.nodes import CLUSTER, NODE_POOL
from holdfast.simulator.clouds.state import CloudObject
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Value

GPU_TAINT: Final[Json] = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
_SCOPES: Final = (
    "devstorage.read_only",
    "logging.write",
    "monitoring",
    "service.management.readonly",
    "servicecontrol",
    "trace.append",
)
_NODE_CONFIG: Final[Json] = {
    "diskSizeGb": 100,
    "diskType": "pd-balanced",
    "imageType": "COS_CONTAINERD",
    "localSsdCount": 0,
    "loggingVariant": "DEFAULT",
    "machineType": "e2-medium",
    "metadata": {"disable-legacy-endpoints": "true"},
    "oauthScopes": [f"https://www.googleapis.com/auth/{scope}" for scope in _SCOPES],
    "serviceAccount": "default",
    "shieldedInstanceConfig": {"enableIntegrityMonitoring": True},
}


def brings_gpus(config: Json) -> bool:
    """Whether a pool's machines have GPUs, attached or their own."""
    machine = machine_catalogue("gcp").get(str(config.get("machineType")))
    attached = any(mapping(each).get("count") for each in sequence(config.get("guestAccelerators")))
    return attached or bool(machine and machine.gpus)


def node_config(making: Making) -> JsonValue:
    """Return a pool's node configuration with GKE's defaults, its drivers and its taints."""
    given = mapping(making.inputs.get("nodeConfig"))
    return {
        **_NODE_CONFIG,
        **given,
        "guestAccelerators": [
            _with_driver(mapping(each)) for each in sequence(given.get("guestAccelerators"))
        ],
        "effectiveTaints": effective_taints(making),
    }


def planned_node_config(inputs: Properties) -> Value:
    """Return what a preview knows of a pool's node configuration: what was said, and that there will be taints."""
    given = inputs.get("nodeConfig")
    return {**given, "effectiveTaints": UNKNOWN} if isinstance(given, Mapping) else UNKNOWN


def effective_taints(making: Making) -> Sequence[JsonValue]:
    """Return all taints of a pool's nodes: those it declares, and GKE's own of its GPUs."""
    declared = sequence(mapping(making.inputs.get("nodeConfig")).get("taints"))
    return [*declared, *([GPU_TAINT] if _is_tainted_for_gpus(making) else [])]


def kept_inputs(making: Making) -> Json:
    """Return what GKE takes a pool to have been asked for.

    Disks that a machine brings show as if the program had asked for them, and the provider makes a pool anew whose
    program has not: https://github.com/hashicorp/terraform-provider-google/issues/17068.
    """
    given = mapping(making.inputs.get("nodeConfig"))
    machine = machine_catalogue("gcp").get(str(given.get("machineType")))
    if machine is None or not machine.local_ssds or "ephemeralStorageLocalSsdConfig" in given:
        return making.inputs
    disks: Json = {"localSsdCount": machine.local_ssds}
    return {**making.inputs, "nodeConfig": {**given, "ephemeralStorageLocalSsdConfig": disks}}


def network_config(making: Making) -> JsonValue:
    """Return where a pool's pods get their addresses: from its cluster's range, unless it says another."""
    cluster = cluster_of(making)
    of_cluster = cluster.inputs if cluster else dict[str, JsonValue]()
    pods = mapping(of_cluster.get("ipAllocationPolicy")).get("clusterSecondaryRangeName")
    shared = {"podRange": pods, "subnetwork": of_cluster.get("subnetwork")}
    known = {name: value for name, value in shared.items() if value is not None}
    return {"enablePrivateNodes": False, **known, **mapping(making.inputs.get("networkConfig"))}


def planned_network_config(inputs: Properties) -> Value:
    """Return what a preview knows of a pool's network."""
    given = inputs.get("networkConfig")
    return given if isinstance(given, Mapping) else UNKNOWN


def zones(making: Making) -> JsonValue:
    """Return a pool's zones: its own, or its cluster's."""
    given, cluster = making.inputs.get("nodeLocations"), cluster_of(making)
    return given or (cluster.outputs.get("nodeLocations") if cluster else None) or []


def version(making: Making) -> JsonValue:
    """Return the version of a pool's nodes: with its first nodes its cluster's, and then its own."""
    current, cluster = making.inventory.find(making.type, making.id), cluster_of(making)
    newest = cluster.outputs.get("masterVersion") if cluster else None
    return making.inputs.get("version") or (current.outputs.get("version") if current else newest) or ""


def upgrade_settings(making: Making) -> JsonValue:
    """Return how a pool is upgraded: node by node, one more than there are, unless it says otherwise."""
    return making.inputs.get("upgradeSettings") or {
        "strategy": "SURGE",
        "maxSurge": 1,
        "maxUnavailable": 0,
    }


def instance_groups(making: Making) -> JsonValue:
    """Return the links to a pool's groups of machines, one in each zone."""
    cluster = str(making.inputs.get("cluster")).rpartition("/")[2]
    return [
        f"https://www.googleapis.com/compute/v1/projects/{making.inputs.get('project')}/zones/{zone}"
        f"/instanceGroupManagers/gke-{cluster}-{making.name}-{making.digest[:8]}-grp"
        for zone in sequence(zones(making))
    ]


def _with_driver(accelerator: Json) -> Json:
    return {"gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}, **accelerator}


def _is_tainted_for_gpus(making: Making) -> bool:
    """Decided when the pool is made, for good: whether the cluster has nodes without GPUs."""
    if not brings_gpus(mapping(making.inputs.get("nodeConfig"))):
        return False
    current = making.inventory.find(making.type, making.id)
    if current is not None:
        return GPU_TAINT in sequence(mapping(current.outputs.get("nodeConfig")).get("effectiveTaints"))
    cluster = cluster_of(making)
    has_first_pool = cluster is not None and cluster.inputs.get("removeDefaultNodePool") is not True
    others = (mapping(one.outputs.get("nodeConfig")) for one in pools_of(making))
    return has_first_pool or any(not brings_gpus(config) for config in others)


def cluster_path(making: Making) -> str:
    """Return the path of a pool's cluster, which the pool names by it or by the cluster's name."""
    given = str(making.inputs.get("cluster"))
    location = making.inputs.get("location") or making.configuration.get("region")
    return given if "/" in given else f"projects/{project(making)}/locations/{location}/clusters/{given}"


def cluster_of(making: Making) -> CloudObject | None:
    """Return a pool's cluster, None where there is none."""
    return making.inventory.find(CLUSTER, cluster_path(making))


def pool_path(making: Making) -> str:
    """Return the path of a pool."""
    return f"{cluster_path(making)}/nodePools/{making.name}"


def pools_of(making: Making) -> list[CloudObject]:
    """Return the other pools of a pool's cluster."""
    beside = f"{cluster_path(making)}/nodePools/"
    pools = making.inventory.of_type(NODE_POOL)
    return [one for one in pools if one.id.startswith(beside) and one.id != making.id]


_LONGEST_NAME: Final = 40


def _no_cluster(making: Making) -> str | None:
    if cluster_of(making) is not None:
        return None
    return f"error creating NodePool: googleapi: Error 404: Not found: {cluster_path(making)}., notFound"


def _taint_said_twice(making: Making) -> str | None:
    """GKE adds the taint of GPUs itself, and takes no second one with the same key and effect."""
    seen: set[tuple[object, object]] = set()
    for taint in map(mapping, effective_taints(making)):
        same = (taint.get("key"), taint.get("effect"))
        if same in seen:
            return _bad(f"Found more than one taint with key {same[0]} and effect {same[1]}.")
        seen.add(same)
    return None


def _bad(message: str) -> str:
    return f"error creating NodePool: googleapi: Error 400: {message}, badRequest"


#: As the provider's own description of the resource has it (`ForceNew`).
_IMMUTABLE: Final = frozenset(
    {
        "initialNodeCount",
        "maxPodsPerNode",
        "placementPolicy",
        "queuedProvisioning",
        *(
            f"networkConfig.{name}"
            for name in (
                "acceleratorNetworkProfile",
                "additionalNodeNetworkConfigs",
                "additionalPodNetworkConfigs",
                "createPodRange",
                "podIpv4CidrBlock",
                "podRange",
                "subnetwork",
            )
        ),
        *(
            f"nodeConfig.{name}"
            for name in (
                "ephemeralStorageConfig",
                "ephemeralStorageLocalSsdConfig",
                "guestAccelerators",
                "localNvmeSsdBlockConfig",
                "localSsdCount",
                "metadata",
                "minCpuPlatform",
                "oauthScopes",
                "preemptible",
                "reservationAffinity",
                "secondaryBootDisks",
                "serviceAccount",
                "shieldedInstanceConfig",
                "spot",
            )
        ),
    }
)

_ALWAYS: Final = (_taint_said_twice,)

RESOURCES: Mapping[str, Rules] = {
    NODE_POOL: Rules(
        longest_name=_LONGEST_NAME,
        identify=pool_path,
        immutable=_IMMUTABLE,
        keeps=kept_inputs,
        computed={
            "instanceGroupUrls": instance_groups,
            "managedInstanceGroupUrls": instance_groups,
            "maxPodsPerNode": lambda making: making.inputs.get("maxPodsPerNode") or 110,
            "networkConfig": network_config,
            "nodeConfig": node_config,
            "nodeLocations": zones,
            "upgradeSettings": upgrade_settings,
            "version": version,
        },
        planned={
            "networkConfig": planned_network_config,
            "nodeConfig": planned_node_config,
        },
        taken="resource - nodePools/{name} - already exists",
        refuse_create=(_no_cluster, no_account, *_ALWAYS),
        refuse_update=_ALWAYS,
    ),
}
