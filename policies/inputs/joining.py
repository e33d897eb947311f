"""Reads what keeps machines on EC2 from joining their cluster, or gangs on them from meeting: addresses, firewalls, identities.

Karpenter buys a machine without knowing any of it. Other programs may make more of each, so nothing here stops a run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from ipaddress import ip_network
from typing import Final, cast

from holdfast.policies.clusters import clusters_of
from holdfast.policies.resources import (
    StackResource,
    Value,
    at,
    is_list,
    is_object,
    items_at,
    known_items,
    memory_mib,
    of_type,
    once,
    text_at,
)
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.reachability.messages import NO_IMAGE, MessageTemplate

_SUBNET: Final = "aws:ec2/subnet:Subnet"
_GROUP: Final = "aws:ec2/securityGroup:SecurityGroup"
_RULES: Final = re.compile(r"aws:(?:ec2/securityGroupRule|vpc/securityGroupIngressRule):\w+")
_ADD_ON: Final = "aws:eks/addon:Addon"
_NETWORK_OF_ZONE: Final = re.compile(r"kubernetes:crd\.k8s\.amazonaws\.com/v\w+:ENIConfig")
_ENTRY: Final = "aws:eks/accessEntry:AccessEntry"
_ROLE: Final = "aws:iam/role:Role"
#: EKS itself admits the role of a managed node group.
_NODE_GROUP: Final = "aws:eks/nodeGroup:NodeGroup"
_POLICY: Final = re.compile(r"aws:(?:iam/(?:policy|rolePolicy|userPolicy)|organizations/policy):\w+")
_BUYS: Final = re.compile(r"(?i)\*|ec2:(\*|RunInstances|CreateFleet)")
#: The conditions by which policies choose machines.
_CHOOSING: Final = frozenset({"ec2:InstanceMarketType", "ec2:InstanceType"})
#: The images of Amazon Linux have a snapshot of this size, and are on this device.
_SNAPSHOT_MIB: Final = 20 * 1024
_ROOT_DEVICE: Final = "/dev/xvda"
#: AWS keeps so many addresses of each subnet.
_KEPT: Final = 5
_BLOCK: Final = re.compile(r"\d+\.\d+\.\d+\.\d+/\d+")
#: Fewer addresses than this are too few for a gang: machines and their pods have one each.
_FEW: Final = 32
#: The last minor version of Kubernetes 1 with images of Amazon Linux 2.
_LAST_OF_AL2: Final = 32


def hindered_machines(
    node_pool: StackResource,
    node_class: StackResource,
    zones: frozenset[str] | Unknown | None,
    resources: Sequence[StackResource],
) -> Iterator[str]:
    """Yield why machines of a class may not join the cluster, or pods on them not reach each other."""
    yield from _few_addresses(node_class, resources)
    yield from _closed_groups(node_class, resources)
    yield from _zones_without_network(zones, resources)
    yield from _without_access(node_pool, node_class, resources)
    yield from _denied(resources)
    yield from _small_disk(node_class)


def faults_of_class(
    node_pool: StackResource, node_class: StackResource, resources: Sequence[StackResource]
) -> Iterator[MessageTemplate]:
    """Yield why Karpenter makes no node of a class at all."""
    spec, name = at(node_class.props, "spec"), node_class.logical_name
    aliases = [str(at(each, "alias")) for each in known_items(spec, "amiSelectorTerms")]
    version = next((at(each.props, "version") for each in clusters_of(node_pool, "aws", resources)), None)
    if (
        aliases
        and all(each.startswith("al2@") for each in aliases)
        and isinstance(version, str)
        and (found := re.fullmatch(r"1\.(\d+)", version))
        and int(found[1]) > _LAST_OF_AL2
    ):
        yield NO_IMAGE.filled(name=name, version=version)


def has_tags(tags: Value, wanted: Value) -> bool:
    """Whether a resource has the tags that a term of a class selects."""
    if not is_object(wanted):
        return False
    return is_object(tags) and all(
        tags.get(key) == value or (value == "*" and key in tags) for key, value in wanted.items()
    )


def _selected(
    node_class: StackResource, field: str, type_token: str, resources: Sequence[StackResource]
) -> list[StackResource]:
    """Return the program's resources that the terms of a class select by tags; none if a term selects by anything else."""
    terms = items_at(node_class.props, "spec", field)
    wanted = [at(each, "tags") for each in terms] if terms is not UNKNOWN else []
    if not all(is_object(each) for each in wanted):
        return []
    return [
        each
        for each in of_type(resources, type_token)
        if any(has_tags(at(each.props, "tags"), tags) for tags in wanted)
    ]


def _few_addresses(node_class: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    blocks = [
        text_at(each.props, "cidrBlock")
        for each in _selected(node_class, "subnetSelectorTerms", _SUBNET, resources)
    ]
    known = [each for each in blocks if isinstance(each, str) and _BLOCK.fullmatch(each)]
    free = sum(ip_network(each, strict=False).num_addresses - _KEPT for each in known)
    if blocks and len(known) == len(blocks) and free < _FEW:
        yield (
            f"the subnets of this program that {node_class.logical_name!r} selects have {free} addresses, of which each machine and "
            "each pod takes one"
        )


def _closed_groups(node_class: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield that no security group of a class lets machines reach each other, if the program shows all rules of them."""
    groups = _selected(node_class, "securityGroupSelectorTerms", _GROUP, resources)
    if groups and not any(_may_open(each) or each.urn in _ruled(resources) for each in groups):
        yield (
            f"the security groups of this program that {node_class.logical_name!r} selects let in neither each other nor a range of "
            "addresses, so pods of a gang do not reach each other"
        )


@once
def _ruled(resources: Sequence[StackResource]) -> frozenset[str]:
    """Return the security groups that rules of the program are added to, or let in."""
    rules = (each for each in resources if _RULES.fullmatch(each.type))
    return frozenset(urn for each in rules for urns in each.refers_to.values() for urn in urns)


def _may_open(group: StackResource) -> bool:
    """Whether its own rules may let in machines of the group; without any, other resources may have them."""
    rules = items_at(group.props, "ingress")
    return (
        rules is UNKNOWN
        or not rules
        or any(
            at(each, "self") in (True, UNKNOWN)
            or any(at(each, field) for field in ("cidrBlocks", "ipv6CidrBlocks", "prefixListIds"))
            or UNKNOWN in known_items(each, "securityGroups")
            for each in rules
        )
    )


def _zones_without_network(
    zones: frozenset[str] | Unknown | None, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield that the CNI has no network for pods in a zone: it then gives pods none, and the machine never becomes ready."""
    custom = any(
        "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG" in found and "topology.kubernetes.io/zone" in found
        for each in of_type(resources, _ADD_ON)
        if isinstance(found := at(each.props, "configurationValues"), str)
    )
    named = {text_at(each.props, "metadata", "name") for each in _networks_of_zones(resources)}
    if custom and named and UNKNOWN not in named and isinstance(zones, frozenset) and zones - named:
        yield f"the CNI has an ENIConfig for each zone, and this program makes none for {', '.join(sorted(zones - named))}"


@once
def _networks_of_zones(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    return tuple(each for each in resources if _NETWORK_OF_ZONE.fullmatch(each.type))


def _without_access(
    node_pool: StackResource, node_class: StackResource, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield that the role of the machines has no access entry, where the program makes entries, and only they let machines in."""
    modes = [
        at(each.props, "accessConfig", "authenticationMode")
        for each in clusters_of(node_pool, "aws", resources)
    ]
    role, entries = text_at(node_class.props, "spec", "role"), of_type(resources, _ENTRY)
    if modes != ["API"] or not entries or not isinstance(role, str):
        return
    named = {*node_class.refers_to.get("spec", ())}
    roles = {
        each.urn for each in of_type(resources, _ROLE) if at(each.props, "name") == role or each.urn in named
    }
    admitting = (
        *((each, "principalArn") for each in entries),
        *((each, "nodeRoleArn") for each in of_type(resources, _NODE_GROUP)),
    )
    if not any(
        str(text_at(each.props, field)).rpartition("/")[2] == role
        or roles & {*each.refers_to.get(field, ())}
        or (text_at(each.props, field) is UNKNOWN and not each.refers_to.get(field))
        for each, field in admitting
    ):
        yield f"the role {role!r} of its machines has no access entry in this program, without which they do not join the cluster"


@once
def _denied(resources: Sequence[StackResource]) -> tuple[str, ...]:
    """Return the policies of the program that forbid to buy machines of one market, or of some types."""
    return tuple(
        f"whether {each.type.rpartition(':')[2]} {each.logical_name!r}, which denies machines by {key}, lets it buy them is not judged"
        for each in resources
        if _POLICY.fullmatch(each.type)
        for key in sorted(
            {
                key
                for found in _statements(at(each.props, "policy") or at(each.props, "content"))
                for key in _denied_by(found)
            }
        )
    )


def _small_disk(node_class: StackResource) -> Iterator[str]:
    """Yield that the disk of its machines is smaller than their image, so that EC2 refuses each."""
    spec = at(node_class.props, "spec")
    aliases = [str(at(each, "alias")) for each in known_items(spec, "amiSelectorTerms")]
    for each in known_items(spec, "blockDeviceMappings"):
        size = at(each, "ebs", "volumeSize")
        mib = memory_mib(size)
        is_root = at(each, "rootVolume") is True or at(each, "deviceName") == _ROOT_DEVICE
        if is_root and isinstance(mib, int) and mib < _SNAPSHOT_MIB and _are_of_amazon_linux(aliases):
            yield f"its root volume of {size} is smaller than the snapshot of its image, 20Gi, and EC2 refuses such machines"


def _are_of_amazon_linux(aliases: Sequence[str]) -> bool:
    return bool(aliases) and all(each.startswith(("al2@", "al2023@")) for each in aliases)


def _statements(document: Value) -> Sequence[Value]:
    if not isinstance(document, str):
        return ()
    try:
        parsed = cast("Value", json.loads(document))
    except ValueError:
        return ()
    found = at(parsed, "Statement")
    return found if is_list(found) else (found,)


def _denied_by(statement: Value) -> frozenset[str]:
    """Return the conditions by which a statement denies to buy machines."""
    actions, conditions = at(statement, "Action"), at(statement, "Condition")
    listed = actions if is_list(actions) else (actions,)
    keys = {
        str(key).lower()
        for tests in (conditions.values() if is_object(conditions) else ())
        for key in (tests if is_object(tests) else ())
    }
    denies = at(statement, "Effect") == "Deny" and any(
        isinstance(each, str) and _BUYS.fullmatch(each) for each in listed
    )
    return frozenset(key for key in _CHOOSING if key.lower() in keys) if denies else frozenset()
