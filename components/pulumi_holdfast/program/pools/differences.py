"""Reads what a pool sets otherwise than the pools of an earlier tier, of what no rule judges: identities, networks, images, disks.

Jobs run on the earlier tier, so what both set alike keeps no job from falling back. What differs is taken for granted, by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.ladder.taints import REPELLING
from pulumi_holdfast.program.pools.node_classes import class_of
from pulumi_holdfast.program.pools.pool import DeclaredPool
from pulumi_holdfast.program.resources import StackResource, Value, at, is_object, known_items

#: By the type of the resource: what decides whether its machines join, fetch images and start pods, alike for every machine type.
_FIELDS: Final[Mapping[re.Pattern[str], Sequence[str]]] = {
    re.compile(r"kubernetes:karpenter\.k8s\.aws/v\w+:EC2NodeClass"): [
        "spec.amiFamily",
        "spec.amiSelectorTerms",
        "spec.associatePublicIPAddress",
        "spec.blockDeviceMappings",
        "spec.instanceProfile",
        "spec.instanceStorePolicy",
        "spec.metadataOptions",
        "spec.role",
        "spec.securityGroupSelectorTerms",
        "spec.subnetSelectorTerms",
        "spec.userData",
    ],
    re.compile(r"kubernetes:(?:eks\.amazonaws\.com|karpenter\.azure\.com)/v\w+:\w+"): [
        "spec.imageFamily",
        "spec.networkPolicy",
        "spec.role",
        "spec.securityGroupSelectorTerms",
        "spec.snatPolicy",
        "spec.subnetSelectorTerms",
        "spec.ephemeralStorage",
        "spec.osDiskSizeGB",
        "spec.vnetSubnetID",
    ],
    re.compile(r"aws:eks/nodeGroup:NodeGroup"): [
        "amiType",
        "diskSize",
        "launchTemplate",
        "nodeRoleArn",
        "releaseVersion",
        "subnetIds",
        "version",
    ],
    re.compile(r"gcp:container/(?:nodePool:NodePool|cluster:Cluster)"): [
        "networkConfig.subnetwork",
        "networkConfig.enablePrivateNodes",
        "nodeConfig.containerdConfig",
        "nodeConfig.bootDiskKmsKey",
        "nodeConfig.diskSizeGb",
        "nodeConfig.gcfsConfig",
        "nodeConfig.imageType",
        "nodeConfig.kubeletConfig",
        "nodeConfig.linuxNodeConfig",
        "nodeConfig.oauthScopes",
        "nodeConfig.serviceAccount",
        "nodeConfig.shieldedInstanceConfig",
        "nodeConfig.tags",
        "version",
    ],
    re.compile(r"azure-native:containerservice(/v\w+)?:(?:AgentPool|ManagedCluster)"): [
        "enableFIPS",
        "enableNodePublicIP",
        "enableUltraSSD",
        "kubeletConfig",
        "kubeletDiskType",
        "linuxOSConfig",
        "networkProfile",
        "orchestratorVersion",
        "osDiskSizeGB",
        "osSKU",
        "podSubnetID",
        "securityProfile",
        "vnetSubnetID",
    ],
}
#: Labels and taints that say how a machine is sold, which no agent needs.
_OF_MARKET: Final = re.compile(r"(?i)spot|preempt|interrupt|capacity|lifecycle|market|demand")


def differences(
    pool: DeclaredPool, earlier: Sequence[DeclaredPool], resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield what a pool sets otherwise than each of the pools of an earlier tier."""
    if not earlier or any(_kind(each) != _kind(pool) for each in earlier):
        return
    missing = sorted(_common(earlier) - _labels(pool))
    added = sorted(_taints(pool) - frozenset[str]().union(*map(_taints, earlier)))
    if missing:
        yield f"agents need no label {', '.join(missing)}, which nodes of {earlier[0].title} have"
    if added:
        yield f"agents tolerate {', '.join(added)}, which nodes of {earlier[0].title} do not have"
    waits = sorted(_startup_taints(pool) - frozenset[str]().union(*map(_startup_taints, earlier)))
    if waits:
        yield f"an agent removes the startup taint {', '.join(waits)}, which nodes of {earlier[0].title} do not have"
    own, others = _set_by(pool, resources), [_set_by(each, resources) for each in earlier]
    differing = [field for field in own if all(own[field] != each.get(field) for each in others)]
    if differing:
        yield f"`{'`, `'.join(differing)}` may differ from what {earlier[0].title} has"


def _kind(pool: DeclaredPool) -> tuple[str, str]:
    return pool.provisioner, pool.labels_path.rpartition("].")[2]


def _common(pools: Sequence[DeclaredPool]) -> frozenset[str]:
    first, *others = map(_labels, pools)
    return first.intersection(*others)


def _labels(pool: DeclaredPool) -> frozenset[str]:
    return frozenset(
        key
        for key, value in pool.own_labels.items()
        if key != POOL and not _OF_MARKET.search(f"{key} {value}")
    )


def _taints(pool: DeclaredPool) -> frozenset[str]:
    taints = () if pool.facts.taints is UNKNOWN else pool.facts.taints
    return frozenset(
        f"{each.key}={each.value}:{each.effect}"
        for each in taints
        if each.effect in REPELLING and not _OF_MARKET.search(f"{each.key} {each.value}")
    )


def _startup_taints(pool: DeclaredPool) -> frozenset[str]:
    """Return the taints that Karpenter expects an agent to remove once its nodes have started."""
    listed = known_items(pool.profile, "spec", "template", "spec", "startupTaints")
    return frozenset(str(at(each, "key")) for each in listed)


def _set_by(pool: DeclaredPool, resources: Sequence[StackResource]) -> Mapping[str, object]:
    """Return the fields that decide, of a pool or of the class of a NodePool; of a value that is not known, what it is made from."""
    node_class = class_of(pool.resource, resources)
    declared: Value = pool.profile if node_class is None else node_class.props
    resource = node_class or pool.resource
    fields = next((names for kind, names in _FIELDS.items() if kind.fullmatch(resource.type)), ())
    found: dict[str, object] = {}
    for field in fields:
        value = at(declared, *field.split("."))
        found[field] = resource.refers_to.get(field.partition(".")[0], ()) if _is_open(value) else value
    return found


def _is_open(value: Value) -> bool:
    """Whether a value, or a part of it, is not known yet."""
    if is_object(value):
        return any(map(_is_open, value.values()))
    return value is UNKNOWN or (isinstance(value, list | tuple) and any(map(_is_open, value)))
