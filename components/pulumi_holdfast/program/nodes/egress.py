"""Reads what keeps the nodes of a pool from leading out of their network: gateways, routes and firewalls of their subnets.

Without a way out nodes do not join their cluster, or fetch no images. Other programs may make one, so nothing here stops a run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.clusters import clusters_of
from pulumi_holdfast.program.resources import (
    Value,
    at,
    by_urn,
    known_items,
    of_type,
    of_types,
    once,
    text_at,
    texts_at,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulumi_holdfast.program.resources import StackResource

_EVERYWHERE: Final = ("0.0.0.0/0", UNKNOWN)

_ROUTE_TABLE: Final = "aws:ec2/routeTable:RouteTable"
_ROUTE: Final = "aws:ec2/route:Route"
_OF_SUBNET: Final = "aws:ec2/routeTableAssociation:RouteTableAssociation"
_ENDPOINT: Final = "aws:ec2/vpcEndpoint:VpcEndpoint"
_ACCESS_LIST: Final = re.compile(r"aws:ec2/networkAcl(?:Association)?:\w+")
_NO_ROUTE: Final = "the subnet {subnet!r} of its machines has no route out (0.0.0.0/0) in {table!r}, and this program makes no endpoint of ECR"
_LISTED: Final = "what {name!r} lets machines in the subnet {subnet!r} reach is not judged"

_NAT: Final = "gcp:compute/routerNat:RouterNat"
_NETWORK: Final = re.compile(r"gcp:compute/(network:Network|subnetwork:Subnetwork)")
_FIREWALL: Final = "gcp:compute/firewall:Firewall"
#: GKE's own rules, which let nodes and pods reach each other, have this priority; a lower number goes first.
_OF_GKE: Final = 1000
_NO_NAT: Final = (
    "its nodes have no public address, and this program makes their network without Cloud NAT: only images from Google's own "
    "registries reach them"
)
_DENIES: Final = (
    "whether {name!r}, which denies connections of its nodes, lets them join the cluster is not judged"
)

_SUBNET: Final = re.compile(r"azure-native:network(/v\w+)?:Subnet|azure:network/subnet:Subnet")
_JOINING: Final = re.compile(
    r"azure:network/subnet(NatGateway|RouteTable|NetworkSecurityGroup)Association:\w+"
)
_RULE: Final = re.compile(
    r"azure-native:network(/v\w+)?:SecurityRule|azure:network/networkSecurityRule:NetworkSecurityRule"
)
#: The property of a subnet that routes to the internet, where its cluster does not.
_ROUTES: Final = {"userassignednatgateway": "natGateway", "userdefinedrouting": "routeTable"}
#: Sources that include other nodes of the network.
_ANYONE: Final = frozenset({"*", "any", "0.0.0.0/0", "virtualnetwork"})
_NO_WAY_OUT: Final = "its nodes have no way out (`outboundType: {kind}`): only images from a registry with a private endpoint reach them"
_NO_GATEWAY: Final = "the subnet {subnet!r} of its nodes has no `{field}`, by which they lead out (`outboundType: {kind}`), so they do not join the cluster"


def closed_on_ec2(subnets: Sequence[StackResource], resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield why machines in subnets of EC2 may have no way out."""
    tables = _tables(resources)
    shown = any(".ecr" in str(at(each.props, "serviceName")) for each in of_type(resources, _ENDPOINT))
    for subnet in subnets:
        table = tables.get(subnet.urn)
        if table is not None and not shown and not _leads_out(table, resources):
            yield _NO_ROUTE.format(subnet=subnet.logical_name, table=table.logical_name)
        for each in _referring(subnet, _ACCESS_LIST, resources):
            yield _LISTED.format(name=each.logical_name, subnet=subnet.logical_name)


def closed_on_gke(node_pool: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield why the nodes of a node pool may have no way out."""
    for cluster in clusters_of(node_pool, "gcp", resources):
        private = (
            at(node_pool.props, "networkConfig", "enablePrivateNodes"),
            at(cluster.props, "privateClusterConfig", "enablePrivateNodes"),
        )
        made = [urn for key in ("network", "subnetwork") for urn in cluster.refers_to.get(key, ())]
        is_own = any(_NETWORK.fullmatch(each.type) for each in _among(made, resources))
        if next((each for each in private if each is not None), None) is True and is_own:
            yield from () if of_type(resources, _NAT) else (_NO_NAT,)
        for each in of_type(resources, _FIREWALL):
            network = each.refers_to.get("network", ())
            if (not network or {*network} & {*made}) and _denies(each.props, node_pool.props):
                yield _DENIES.format(name=each.logical_name)


def closed_on_aks(pool: StackResource, network: Value, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield why the nodes of an agent pool, in a cluster with this network, may have no way out."""
    kind = str(text_at(network, "outboundType") or "").lower()
    if kind in {"none", "block"}:
        yield _NO_WAY_OUT.format(kind=kind)
    for subnet in _among(pool.refers_to.get("vnetSubnetID", ()), resources):
        if not _SUBNET.fullmatch(subnet.type):
            continue
        joined = _referring(subnet, _JOINING, resources)
        field = _ROUTES.get(kind, "")
        is_joined = any(f"/subnet{field[:1].upper()}{field[1:]}Assoc" in each.type for each in joined)
        if field and at(subnet.props, field) is None and not is_joined:
            yield _NO_GATEWAY.format(subnet=subnet.logical_name, field=field, kind=kind)
        groups = [urn for each in (subnet, *joined) for urns in each.refers_to.values() for urn in urns]
        for each in _among(groups, resources):
            if "NetworkSecurityGroup" in each.type and any(map(_rejects, _rules(each, resources))):
                yield _DENIES.format(name=each.logical_name)


def _leads_out(table: StackResource, resources: Sequence[StackResource]) -> bool:
    """Whether a route table has a default route, or may have one."""
    own = known_items(table.props, "routes")
    routes = [each.props for each in of_type(resources, _ROUTE) if table.urn in _urns(each)]
    return at(table.props, "routes") is UNKNOWN or any(
        at(each, "cidrBlock") in _EVERYWHERE
        or at(each, "destinationCidrBlock") in _EVERYWHERE
        or at(each, "destinationPrefixListId") is not None
        for each in (*own, *routes)
    )


@once
def _tables(resources: Sequence[StackResource]) -> Mapping[str, StackResource]:
    """Return the route tables of the program, by the subnets that they are associated with."""
    found: dict[str, StackResource] = {}
    for each in of_type(resources, _OF_SUBNET):
        for table in _among(each.refers_to.get("routeTableId", ()), resources):
            if table.type == _ROUTE_TABLE:
                found |= dict.fromkeys(each.refers_to.get("subnetId", ()), table)
    return found


def _denies(firewall: Value, node_pool: Value) -> bool:
    """Whether a firewall rule of a network denies connections that nodes of a pool need: all out, or those of each other."""
    tags, own = texts_at(firewall, "targetTags"), texts_at(node_pool, "nodeConfig", "tags")
    covers = (
        not isinstance(tags, frozenset) or not tags or own is UNKNOWN or bool(tags & (own or frozenset()))
    )
    priority = whole_number(at(firewall, "priority"))
    goes_first = isinstance(priority, int) and priority < _OF_GKE
    return (
        bool(known_items(firewall, "denies"))
        and at(firewall, "disabled") is not True
        and covers
        and (text_at(firewall, "direction") == "EGRESS" or goes_first)
    )


def _rules(group: StackResource, resources: Sequence[StackResource]) -> Iterator[Value]:
    """Yield the rules of a network security group."""
    yield from known_items(group.props, "securityRules")
    yield from (each.props for each in _referring(group, _RULE, resources))


def _rejects(rule: Value) -> bool:
    """Whether a security rule denies connections that nodes need: some out, or those of each other."""
    access, direction, source = (
        str(at(rule, field)).lower() for field in ("access", "direction", "sourceAddressPrefix")
    )
    return access == "deny" and (direction == "outbound" or source in _ANYONE)


def _referring(
    resource: StackResource, kind: re.Pattern[str], resources: Sequence[StackResource]
) -> list[StackResource]:
    return [each for each in of_types(resources, kind) if resource.urn in _urns(each)]


def _urns(resource: StackResource) -> frozenset[str]:
    return frozenset(urn for urns in resource.refers_to.values() for urn in urns)


def _among(urns: Sequence[str], resources: Sequence[StackResource]) -> list[StackResource]:
    known = by_urn(resources)
    return [known[urn] for urn in dict.fromkeys(urns) if urn in known]
