"""Reads what keeps machines on EC2 from joining their cluster, or gangs on them from meeting: addresses, firewalls, identities.

Karpenter buys a machine without knowing any of it. Other programs may make more of each, so nothing here stops a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ipaddress import ip_network
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.reachability.messages import NO_IMAGE, MessageTemplate
from pulumi_holdfast.program.clusters import clusters_of
from pulumi_holdfast.program.nodes.egress import closed_on_ec2
from pulumi_holdfast.program.nodes.node_roles import missing_rights, role_of_class, without_access
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    is_object,
    items_at,
    known_items,
    memory_mib,
    of_type,
    of_types,
    once,
    text_at,
)

_CLUSTER: Final = "aws:eks/cluster:Cluster"
_SUBNET: Final = "aws:ec2/subnet:Subnet"
_GROUP: Final = "aws:ec2/securityGroup:SecurityGroup"
_RULES: Final = re.compile(r"aws:(?:ec2/securityGroupRule|vpc/securityGroupIngressRule):\w+")
_ADD_ON: Final = "aws:eks/addon:Addon"
_NETWORK_OF_ZONE: Final = re.compile(r"kubernetes:crd\.k8s\.amazonaws\.com/v\w+:ENIConfig")
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
    yield from closed_on_ec2(selected_by(node_class, "subnetSelectorTerms", _SUBNET, resources), resources)
    yield from _closed_groups(node_class, resources)
    yield from _of_other_clusters(node_pool, node_class, resources)
    yield from _zones_without_network(zones, resources)
    yield from without_access(node_pool, node_class, resources)
    yield from missing_rights(role_of_class(node_class, resources), resources)
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


def selected_by(
    node_class: StackResource, field: str, type_token: str, resources: Sequence[StackResource]
) -> list[StackResource]:
    """Return the program's resources that the terms of a class select, by tags or ids; none if a term selects by anything else."""
    terms = items_at(node_class.props, "spec", field)
    listed: Sequence[Value] = () if terms is UNKNOWN else terms
    if not all(is_object(at(each, "tags")) or at(each, "id") is not None for each in listed):
        return []
    referred = node_class.refers_to.get("spec", ())
    return [
        each
        for each in of_type(resources, type_token)
        if any(_is_selected(each, term, each.urn in referred) for term in listed)
    ]


def _is_selected(resource: StackResource, term: Value, is_referred: bool) -> bool:
    """Whether a term selects a resource: by its tags, or by its id, which the program refers to before it is known."""
    tags, named = at(term, "tags"), at(term, "id")
    if tags is not None:
        return _has_tags(at(resource.props, "tags"), tags)
    return is_referred if named is UNKNOWN else at(resource.props, "id") == named


def _has_tags(tags: Value, wanted: Value) -> bool:
    """Whether a resource has the tags that a term of a class selects."""
    if not is_object(wanted):
        return False
    return is_object(tags) and all(
        tags.get(key) == value or (value == "*" and key in tags) for key, value in wanted.items()
    )


def _few_addresses(node_class: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    blocks = [
        text_at(each.props, "cidrBlock")
        for each in selected_by(node_class, "subnetSelectorTerms", _SUBNET, resources)
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
    groups = selected_by(node_class, "securityGroupSelectorTerms", _GROUP, resources)
    if groups and not any(_may_open(each) or each.urn in _ruled(resources) for each in groups):
        yield (
            f"the security groups of this program that {node_class.logical_name!r} selects let in neither each other nor a range of "
            "addresses, so pods of a gang do not reach each other"
        )


def _of_other_clusters(
    node_pool: StackResource, node_class: StackResource, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield that a class selects the security groups of another cluster of the program, by a tag with its name."""
    own = {str(at(each.props, "name")) for each in clusters_of(node_pool, "aws", resources)}
    all_names = {str(at(each.props, "name")) for each in of_type(resources, _CLUSTER)}
    others = all_names - own if own else frozenset[str]()
    for term in known_items(node_class.props, "spec", "securityGroupSelectorTerms"):
        tags = at(term, "tags")
        for key, value in tags.items() if is_object(tags) else ():
            for name in sorted(others & {str(value), key.rpartition("/")[2]}):
                yield f"{node_class.logical_name!r} selects the security groups of the cluster {name!r}, and whether its own admits them is not judged"


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
    named = {text_at(each.props, "metadata", "name") for each in of_types(resources, _NETWORK_OF_ZONE)}
    if custom and named and UNKNOWN not in named and isinstance(zones, frozenset) and zones - named:
        yield f"the CNI has an ENIConfig for each zone, and this program makes none for {', '.join(sorted(zones - named))}"


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
