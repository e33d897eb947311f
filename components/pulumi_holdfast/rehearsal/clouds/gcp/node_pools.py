"""GKE node pools: computed outputs, refused changes, and the fields that replace a pool."""

from collections.abc import Mapping, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.rehearsal.clouds.catalogue import ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.gcp.names import no_account, project
from pulumi_holdfast.rehearsal.clouds.gcp.nodes import CLUSTER, IMMUTABLE_NODE_FIELDS, NODE_POOL
from pulumi_holdfast.rehearsal.clouds.relations import needs_at
from pulumi_holdfast.rehearsal.clouds.state import CloudObject
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Value

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
    """Whether a pool's machines have GPUs, attached or built-in."""
    machine = machine_catalogue("gcp").get(str(config.get("machineType")))
    attached = any(mapping(each).get("count") for each in sequence(config.get("guestAccelerators")))
    return attached or bool(machine and machine.gpus)


def node_config(request: ResourceRequest) -> JsonValue:
    """Return a pool's node configuration with GKE's defaults, drivers and taints."""
    given = mapping(request.inputs.get("nodeConfig"))
    return {
        **_NODE_CONFIG,
        **given,
        "guestAccelerators": [
            _with_driver(mapping(each)) for each in sequence(given.get("guestAccelerators"))
        ],
        "effectiveTaints": effective_taints(request),
    }


def planned_node_config(inputs: Properties) -> Value:
    """Return a pool's node configuration in a preview: the inputs, and unknown effective taints."""
    given = inputs.get("nodeConfig")
    return {**given, "effectiveTaints": UNKNOWN} if isinstance(given, Mapping) else UNKNOWN


def effective_taints(request: ResourceRequest) -> Sequence[JsonValue]:
    """Return the taints of a pool: its own, and GKE's GPU taint."""
    declared = sequence(mapping(request.inputs.get("nodeConfig")).get("taints"))
    return [*declared, *([GPU_TAINT] if _is_tainted_for_gpus(request) else [])]


def kept_inputs(request: ResourceRequest) -> Json:
    """Return the inputs that GKE stores for a pool.

    A machine's built-in disks appear as inputs, and the provider replaces a pool whose program does not declare them:
    https://github.com/hashicorp/terraform-provider-google/issues/17068.
    """
    given = mapping(request.inputs.get("nodeConfig"))
    machine = machine_catalogue("gcp").get(str(given.get("machineType")))
    if machine is None or not machine.local_ssds or "ephemeralStorageLocalSsdConfig" in given:
        return request.inputs
    disks: Json = {"localSsdCount": machine.local_ssds}
    return {**request.inputs, "nodeConfig": {**given, "ephemeralStorageLocalSsdConfig": disks}}


def network_config(request: ResourceRequest) -> JsonValue:
    """Return a pool's network configuration, by default with its cluster's pod range."""
    cluster = cluster_of(request)
    of_cluster = cluster.inputs if cluster else dict[str, JsonValue]()
    pods = mapping(of_cluster.get("ipAllocationPolicy")).get("clusterSecondaryRangeName")
    shared = {"podRange": pods, "subnetwork": of_cluster.get("subnetwork")}
    known = {name: value for name, value in shared.items() if value is not None}
    return {"enablePrivateNodes": False, **known, **mapping(request.inputs.get("networkConfig"))}


def planned_network_config(inputs: Properties) -> Value:
    """Return a pool's network configuration in a preview."""
    given = inputs.get("networkConfig")
    return given if isinstance(given, Mapping) else UNKNOWN


def zones(request: ResourceRequest) -> JsonValue:
    """Return a pool's zones: its own, or its cluster's."""
    given, cluster = request.inputs.get("nodeLocations"), cluster_of(request)
    return given or (cluster.outputs.get("nodeLocations") if cluster else None) or []


def version(request: ResourceRequest) -> JsonValue:
    """Return the version of a pool's nodes: the cluster's at creation."""
    current, cluster = request.inventory.find(request.type, request.id), cluster_of(request)
    newest = cluster.outputs.get("masterVersion") if cluster else None
    return request.inputs.get("version") or (current.outputs.get("version") if current else newest) or ""


def upgrade_settings(request: ResourceRequest) -> JsonValue:
    """Return a pool's upgrade settings, by default a surge of one node."""
    return request.inputs.get("upgradeSettings") or {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0}


def instance_groups(request: ResourceRequest) -> JsonValue:
    """Return the links of a pool's instance groups, one in each zone."""
    cluster = str(request.inputs.get("cluster")).rpartition("/")[2]
    return [
        f"https://www.googleapis.com/compute/v1/projects/{request.inputs.get('project')}/zones/{zone}"
        f"/instanceGroupManagers/gke-{cluster}-{request.name}-{request.digest[:8]}-grp"
        for zone in sequence(zones(request))
    ]


def _with_driver(accelerator: Json) -> Json:
    return {"gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}, **accelerator}


def _is_tainted_for_gpus(request: ResourceRequest) -> bool:
    """GKE decides at creation: it adds the taint where the cluster has nodes without GPUs."""
    if not brings_gpus(mapping(request.inputs.get("nodeConfig"))):
        return False
    current = request.inventory.find(request.type, request.id)
    if current is not None:
        return GPU_TAINT in sequence(mapping(current.outputs.get("nodeConfig")).get("effectiveTaints"))
    cluster = cluster_of(request)
    has_first_pool = cluster is not None and cluster.inputs.get("removeDefaultNodePool") is not True
    others = (mapping(one.outputs.get("nodeConfig")) for one in pools_of(request))
    return has_first_pool or any(not brings_gpus(config) for config in others)


def cluster_path(request: ResourceRequest) -> str:
    """Return the path of a pool's cluster, which the input gives as a path or a name."""
    given = str(request.inputs.get("cluster"))
    location = request.inputs.get("location") or request.configuration.get("region")
    return given if "/" in given else f"projects/{project(request)}/locations/{location}/clusters/{given}"


def cluster_of(request: ResourceRequest) -> CloudObject | None:
    """Return a pool's cluster, None where it does not exist."""
    return request.inventory.find(CLUSTER, cluster_path(request))


def pool_path(request: ResourceRequest) -> str:
    """Return the path of a pool."""
    return f"{cluster_path(request)}/nodePools/{request.name}"


def pools_of(request: ResourceRequest) -> list[CloudObject]:
    """Return the other pools of a pool's cluster."""
    beside = f"{cluster_path(request)}/nodePools/"
    pools = request.inventory.of_type(NODE_POOL)
    return [one for one in pools if one.id.startswith(beside) and one.id != request.id]


_LONGEST_NAME: Final = 40


def _taint_said_twice(request: ResourceRequest) -> str | None:
    """GKE adds the GPU taint, and refuses a second one: hashicorp/terraform-provider-google issue 7928."""
    seen: set[tuple[object, object]] = set()
    for taint in map(mapping, effective_taints(request)):
        same = (taint.get("key"), taint.get("effect"))
        if same in seen:
            return _bad(f"Found more than one taint with key {same[0]} and effect {same[1]}.")
        seen.add(same)
    return None


def _bad(message: str) -> str:
    return f"error creating NodePool: googleapi: Error 400: {message}, badRequest"


_IMMUTABLE: Final = frozenset(
    {
        "initialNodeCount",
        "maxPodsPerNode",
        "namePrefix",
        "placementPolicy.policyName",
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
        *IMMUTABLE_NODE_FIELDS,
    }
)

RESOURCES: Mapping[str, Rules] = {
    NODE_POOL: Rules(
        longest_name=_LONGEST_NAME,
        identify=pool_path,
        immutable=_IMMUTABLE,
        keeps=kept_inputs,
        computed={
            "instanceGroupUrls": instance_groups,
            "managedInstanceGroupUrls": instance_groups,
            "maxPodsPerNode": lambda request: request.inputs.get("maxPodsPerNode") or 110,
            "networkConfig": network_config,
            "nodeConfig": node_config,
            "nodeLocations": zones,
            "upgradeSettings": upgrade_settings,
            "version": version,
        },
        planned={
            "networkConfig": planned_network_config,
            "nodeConfig": planned_node_config,
            "nodeCount": lambda inputs: inputs.get("nodeCount", inputs.get("initialNodeCount", UNKNOWN)),
        },
        taken="resource - nodePools/{name} - already exists",
        refuse_create=(
            needs_at(
                CLUSTER,
                cluster_path,
                "error creating NodePool: googleapi: Error 404: Not found: {value}., notFound",
            ),
            no_account,
            _taint_said_twice,
        ),
        refuse_update=(_taint_said_twice,),
    )
}
