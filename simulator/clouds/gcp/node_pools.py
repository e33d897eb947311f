"""GKE's node pools: what it and its provider refuse, and what they replace a pool for."""

from collections.abc import Mapping
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.catalogue import Making, Rules
from holdfast.simulator.clouds.gcp import node_pool_defaults as defaults
from holdfast.simulator.clouds.gcp.node_account import no_account
from holdfast.simulator.clouds.gcp.node_pool_places import cluster_of, cluster_path, pool_path
from holdfast.simulator.clouds.gcp.nodes.places import NODE_POOL
from holdfast.simulator.kubernetes_client.objects import mapping

_LONGEST_NAME: Final = 40
_SHUTDOWN_SECONDS: Final = (0, 30, 120)


def _no_cluster(making: Making) -> str | None:
    if cluster_of(making) is not None:
        return None
    return f"error creating NodePool: googleapi: Error 404: Not found: {cluster_path(making)}., notFound"


def _taint_said_twice(making: Making) -> str | None:
    """GKE adds the taint of GPUs itself, and takes no second one with the same key and effect."""
    seen: set[tuple[object, object]] = set()
    for taint in map(mapping, defaults.effective_taints(making)):
        same = (taint.get("key"), taint.get("effect"))
        if same in seen:
            return _bad(f"Found more than one taint with key {same[0]} and effect {same[1]}.")
        seen.add(same)
    return None


def _wrong_shutdown(making: Making) -> str | None:
    kubelet = mapping(_config(making).get("kubeletConfig"))
    total, critical = (
        kubelet.get(name) for name in ("shutdownGracePeriodSeconds", "shutdownGracePeriodCriticalPodsSeconds")
    )
    if total is None and critical is None:
        return None
    if _config(making).get("spot") is not True:
        return _bad("shutdown_grace_period_seconds is only valid for Spot VMs.")
    if total not in _SHUTDOWN_SECONDS:
        return _bad("Allowed values of shutdown_grace_period_seconds: 0, 30, 120.")
    if isinstance(critical, int | float) and critical > int(total):
        return _bad("shutdown_grace_period_critical_pods_seconds should be <= shutdown_grace_period_seconds.")
    return None


def _limits_of_both_kinds(making: Making) -> str | None:
    scaling = mapping(making.inputs.get("autoscaling"))
    each, total = (
        any(scaling.get(f"{prefix}{limit}NodeCount") for limit in limits)
        for prefix, limits in (("", ("min", "max")), ("total", ("Min", "Max")))
    )
    return _bad("Limits for each zone cannot be used with total limits.") if each and total else None


def _name_too_long(making: Making) -> str | None:
    if len(making.name) <= _LONGEST_NAME:
        return None
    return f'"name" cannot be longer than {_LONGEST_NAME} characters'


def _config(making: Making) -> Json:
    return mapping(making.inputs.get("nodeConfig"))


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

_ALWAYS: Final = (_taint_said_twice, _wrong_shutdown, _limits_of_both_kinds)

RESOURCES: Mapping[str, Rules] = {
    NODE_POOL: Rules(
        longest_name=_LONGEST_NAME,
        identify=pool_path,
        immutable=_IMMUTABLE,
        keeps=defaults.kept_inputs,
        computed={
            "instanceGroupUrls": defaults.instance_groups,
            "managedInstanceGroupUrls": defaults.instance_groups,
            "maxPodsPerNode": lambda making: making.inputs.get("maxPodsPerNode") or 110,
            "networkConfig": defaults.network_config,
            "nodeConfig": defaults.node_config,
            "nodeLocations": defaults.zones,
            "upgradeSettings": defaults.upgrade_settings,
            "version": defaults.version,
        },
        planned={
            "networkConfig": defaults.planned_network_config,
            "nodeConfig": defaults.planned_node_config,
        },
        taken="resource - nodePools/{name} - already exists",
        refuse_create=(_name_too_long, _no_cluster, no_account, *_ALWAYS),
        refuse_update=_ALWAYS,
    ),
}
