"""Turns the clusters and agent pools of Azure's classic provider into those of azure-native, which every rule reads.

Both describe the same API, and most fields have the same names. A field of a pool that has none in azure-native keeps its own, so
that it is named as one that no rule judges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pulumi_holdfast.program.resources import StackResource, Value, at, is_object

_CLUSTER: Final = "azure:containerservice/kubernetesCluster:KubernetesCluster"
_POOL: Final = "azure:containerservice/kubernetesClusterNodePool:KubernetesClusterNodePool"
#: The types of azure-native in place of those of the classic provider.
NATIVE: Final = {
    _CLUSTER: "azure-native:containerservice:ManagedCluster",
    _POOL: "azure-native:containerservice:AgentPool",
}
_FIELDS_OF_POOL: Final = {
    "kubernetesClusterId": "resourceName",
    "nodeCount": "count",
    "autoScalingEnabled": "enableAutoScaling",
    "priority": "scaleSetPriority",
    "evictionPolicy": "scaleSetEvictionPolicy",
    "zones": "availabilityZones",
    "gpuInstance": "gpuInstanceProfile",
    "capacityReservationGroupId": "capacityReservationGroupID",
    "proximityPlacementGroupId": "proximityPlacementGroupID",
    "hostGroupId": "hostGroupID",
    "vnetSubnetId": "vnetSubnetID",
    "podSubnetId": "podSubnetID",
    "osDiskSizeGb": "osDiskSizeGB",
    "osSku": "osSKU",
    "ultraSsdEnabled": "enableUltraSSD",
    "fipsEnabled": "enableFIPS",
    "hostEncryptionEnabled": "enableEncryptionAtHost",
    "nodePublicIpEnabled": "enableNodePublicIP",
}
#: What only the classic provider uses.
_OWN: Final = frozenset({"temporaryNameForRotation"})
#: The other fields of a cluster decide nothing about its pools.
_FIELDS_OF_CLUSTER: Final = {
    "name": "resourceName",
    "location": "location",
    "networkProfile": "networkProfile",
    "nodeProvisioningProfile": "nodeProvisioningProfile",
}
_FIELDS_OF_AUTOSCALER: Final = {
    "maxNodeProvisioningTime": "maxNodeProvisionTime",
    "newPodScaleUpDelay": "newPodScaleUpDelay",
}
_FOR_ADDONS: Final = "CriticalAddonsOnly=true:NoSchedule"


def with_native(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    """Return the resources with those of the classic provider as azure-native's."""
    return tuple(_native(each) if each.type in NATIVE else each for each in resources)


def _native(resource: StackResource) -> StackResource:
    read = _cluster if resource.type == _CLUSTER else _agent_pool
    names = {**_FIELDS_OF_POOL, **_FIELDS_OF_CLUSTER}
    return replace(
        resource,
        type=NATIVE[resource.type],
        props=read(resource.props),
        inputs=None if resource.inputs is None else read(resource.inputs),
        refers_to={names.get(key, key): urns for key, urns in resource.refers_to.items()},
    )


def _agent_pool(props: Value) -> Mapping[str, Value]:
    """Return an agent pool, which names its cluster by the end of an address."""
    cluster = at(props, "kubernetesClusterId")
    named = {"resourceName": cluster.rpartition("/")[2]} if isinstance(cluster, str) else {}
    return {**_profile(props, "agentPoolName"), **named}


def _cluster(props: Value) -> Mapping[str, Value]:
    """Return a cluster, whose only pool runs the system."""
    system, access = at(props, "defaultNodePool"), at(props, "apiServerAccessProfile")
    taint = {"nodeTaints": [_FOR_ADDONS]} if at(system, "onlyCriticalAddonsEnabled") is True else {}
    return {
        **_renamed(props, _FIELDS_OF_CLUSTER),
        "agentPoolProfiles": [{**_profile(system, "name"), **taint, "mode": "System"}],
        "autoScalerProfile": _renamed(at(props, "autoScalerProfile"), _FIELDS_OF_AUTOSCALER),
        "apiServerAccessProfile": {
            "enablePrivateCluster": at(props, "privateClusterEnabled"),
            "authorizedIPRanges": at(access, "authorizedIpRanges"),
        },
    }


def _profile(props: Value, name: str) -> Mapping[str, Value]:
    """Return what two kinds of pools share; `name` is the field with the name of this one."""
    kept = {
        _FIELDS_OF_POOL.get(key, key): value
        for key, value in (props.items() if is_object(props) else ())
        if key not in {"name", "gpuDriver", "onlyCriticalAddonsEnabled", *_OWN}
    }
    driver = at(props, "gpuDriver")
    return {**kept, name: at(props, "name"), **({"gpuProfile": {"driver": driver}} if driver else {})}


def _renamed(value: Value, names: Mapping[str, str]) -> Mapping[str, Value]:
    return {native: at(value, classic) for classic, native in names.items()}
