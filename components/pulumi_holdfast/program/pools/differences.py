"""Reads what machines of a pool have otherwise than those of an earlier tier: identities, networks, images, disks.

No rule judges these fields. Jobs run on the earlier tier, so where both pools have the same, they keep no job from falling back; what
differs is taken for granted, by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.pools.node_classes import class_of
from pulumi_holdfast.program.pools.pool import DeclaredPool
from pulumi_holdfast.program.resources import StackResource, Value, at, is_list, is_object

#: Where node classes, and pools of each cloud, have the fields.
_PARTS: Final = ("spec", "nodeConfig", "networkConfig", "")
#: The fields that decide whether machines join, fetch images and start pods, alike for every machine type.
_FIELDS: Final = (
    "amiFamily", "amiSelectorTerms", "amiType", "associatePublicIPAddress", "blockDeviceMappings", "bootDiskKmsKey", "containerdConfig",
    "diskSize", "diskSizeGb", "enableFIPS", "enableNodePublicIP", "enablePrivateNodes", "enableUltraSSD", "ephemeralStorage", "gcfsConfig",
    "imageFamily", "imageType", "instanceProfile", "instanceStorePolicy", "kubeletDiskType",
    "metadataOptions", "networkPolicy", "nodeRoleArn", "oauthScopes", "orchestratorVersion", "osDiskSizeGB", "osSKU",
    "podSubnetID", "releaseVersion", "role", "securityGroupSelectorTerms", "securityProfile", "serviceAccount", "shieldedInstanceConfig",
    "snatPolicy", "subnetIds", "subnetSelectorTerms", "subnetwork", "tags", "userData", "version", "vnetSubnetID",
)  # fmt: skip
#: Tags of machines are notes, except on GKE, where firewalls go by them.
_NOTES: Final = {"spec": "tags", "": "tags"}
#: What an unknown value of a field is made from, by the types of the resources: all others that its object refers to are of other fields.
_MADE_OF: Final = {
    "subnet": re.compile(r".*(?:[sS]ubnet|[nN]etwork).*"),
    "securityGroup": re.compile(r".*[sS]ecurityGroup.*|aws:eks/cluster:Cluster"),
    "role": re.compile(r"aws:iam/.*|aws:eks/.*"),
    "instanceProfile": re.compile(r"aws:iam/.*"),
}


def differences(
    pool: DeclaredPool, earlier: Sequence[DeclaredPool], resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield what a pool sets otherwise than each of the pools of an earlier tier."""
    own, others = _declaring(pool, resources), [_declaring(each, resources) for each in earlier]
    if not others or any(each[1].type != own[1].type for each in others):
        return
    differing = [
        f"{part}.{field}".lstrip(".")
        for part in _PARTS
        for field in _FIELDS
        if _NOTES.get(part) != field and not any(_is_same(part, field, own, each) for each in others)
    ]
    if differing:
        yield f"`{'`, `'.join(differing)}` may differ from what {earlier[0].title} has"


def _declaring(pool: DeclaredPool, resources: Sequence[StackResource]) -> tuple[Value, StackResource]:
    """Return what declares the machines of a pool: its node class, or its own profile."""
    node_class = class_of(pool.resource, resources)
    return (pool.profile, pool.resource) if node_class is None else (node_class.props, node_class)


def _is_same(
    part: str, field: str, one: tuple[Value, StackResource], other: tuple[Value, StackResource]
) -> bool:
    """Whether both have the same value of a field; values that are not known yet are the same if they are made from the same objects."""
    path = (*((part,) if part else ()), field)
    left, right = at(one[0], *path), at(other[0], *path)
    if not _are_alike(left, right):
        return False
    pattern = next((each for start, each in _MADE_OF.items() if start.lower() in field.lower()), None)
    made_of = [
        frozenset(
            urn
            for urn in resource.refers_to.get(path[0], ())
            if pattern is None or pattern.fullmatch(_type_of(urn))
        )
        for _, resource in (one, other)
    ]
    return not _is_open(left) or made_of[0] == made_of[1]


def _type_of(urn: str) -> str:
    """Return the type of a resource from its URN, which has those of its parents before it."""
    return urn.split("::")[2].rpartition("$")[2] if urn.count("::") > 2 else ""


def _are_alike(left: Value, right: Value) -> bool:
    """Whether two values are equal wherever both are known, and are unknown in the same places."""
    if is_object(left) and is_object(right):
        return left.keys() == right.keys() and all(_are_alike(left[key], right[key]) for key in left)
    if is_list(left) and is_list(right):
        return len(left) == len(right) and all(map(_are_alike, left, right))
    return left == right


def _is_open(value: Value) -> bool:
    """Whether a value, or a part of it, is not known yet."""
    if is_object(value):
        return any(map(_is_open, value.values()))
    return value is UNKNOWN or (is_list(value) and any(map(_is_open, value)))
