"""What AKS does not let be changed of a cluster that is there."""

import re
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.azure.errors import said
from holdfast.simulator.clouds.catalogue import Making
from holdfast.simulator.clouds.state import CloudObject
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

_POOL: Final = "azure-native:containerservice:AgentPool"
#: What a pool keeps for life.
_OF_A_POOL: Final = ("vmSize", "osDiskSizeGB", "vnetSubnetID", "availabilityZones")


def _new_pool(making: Making) -> str | None:
    """A pool is made and deleted by itself; the cluster's own list is only to change those that are there."""
    current = _current(making)
    there = {*_profiles(current.inputs), *_pools(making)}
    if set(_profiles(making.inputs)) <= there:
        return None
    return said(
        "BadRequest",
        "A new agent pool was introduced. Adding agent pools to an existing cluster is not allowed through managed "
        "cluster operations. For agent pool specific change, please use per agent pool operations: "
        "https://aka.ms/agent-pool-rest-api",
    )


def _fixed_of_a_pool(making: Making) -> str | None:
    before = _profiles(_current(making).inputs)
    for name, profile in _profiles(making.inputs).items():
        for field in _OF_A_POOL:
            if name in before and before[name].get(field) != profile.get(field):
                return _fixed(f"properties.{field}")
    return None


def _public_or_private(making: Making) -> str | None:
    """Without the API server in the cluster's network, which none of ours has, one never becomes the other."""
    asked, before = (
        mapping(inputs.get("apiServerAccessProfile")).get("enablePrivateCluster") is True
        for inputs in (making.inputs, _current(making).inputs)
    )
    if asked == before:
        return None
    return _fixed("properties.apiServerAccessProfile.enablePrivateCluster")


def _version(making: Making) -> str | None:
    asked, before = (
        str(inputs.get("kubernetesVersion") or "") for inputs in (making.inputs, _current(making).inputs)
    )
    if asked == before or not asked or not before:
        return None
    (major, minor), (old_major, old_minor) = _minor(asked), _minor(before)
    if major == old_major and minor - old_minor in (0, 1):
        return None
    return said(
        "OperationNotAllowed",
        f"Upgrading Kubernetes version {before} to {asked} is not allowed. Available upgrades: "
        f"[{old_major}.{old_minor + 1}]. Please see https://aka.ms/aks-supported-k8s-ver for version details.",
    )


def _fixed(what: str) -> str:
    return said("PropertyChangeNotAllowed", f"Changing property '{what}' is not allowed.")


def _minor(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _current(making: Making) -> CloudObject:
    return next(one for one in making.inventory.of_type(making.type) if one.id == making.id)


def _profiles(inputs: Json) -> dict[str, Json]:
    profiles = map(mapping, sequence(inputs.get("agentPoolProfiles")))
    return {str(profile.get("name")): profile for profile in profiles}


def _pools(making: Making) -> set[str]:
    """The pools that are resources of their own."""
    return {
        str(pool.inputs.get("agentPoolName"))
        for pool in making.inventory.of_type(_POOL)
        if pool.inputs.get("resourceName") == making.name
    }


CHANGES: Final = (_new_pool, _fixed_of_a_pool, _public_or_private, _version)
