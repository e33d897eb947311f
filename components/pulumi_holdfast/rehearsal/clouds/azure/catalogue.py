"""The Azure catalogue: all resource rules and functions."""

from typing import Final

from pulumi_holdfast.rehearsal.clouds.azure import api_server, cluster, iam, network, node_pools, storage
from pulumi_holdfast.rehearsal.clouds.azure.api_server import refuse_connection, where_from
from pulumi_holdfast.rehearsal.clouds.azure.instances import machines_of, system_machines_of
from pulumi_holdfast.rehearsal.clouds.azure.names import RESOURCE_GROUP, group_id, subscription
from pulumi_holdfast.rehearsal.clouds.azure.nodes import AGENT_POOL
from pulumi_holdfast.rehearsal.clouds.catalogue import Autonaming, Catalogue, Messages, ResourceRequest, Rules


def _group_id(request: ResourceRequest) -> str:
    return f"/subscriptions/{subscription(request)}/resourceGroups/{request.name}"


# Azure deletes the resources of a group with the group. Here they stay, which shows what the program did not delete.
_GROUP: Final = Rules(
    name_property="resourceGroupName",
    unique_within=(),
    longest_name=90,
    identify=_group_id,
    immutable=frozenset({"location"}),
)


# The inputs with the parents of a nested resource; the resource group is first in each id.
_PARENTS = ("accountName", "resourceName")


def _identify(request: ResourceRequest) -> str:
    """Return a resource id: /subscriptions/…/resourceGroups/<group>/providers/<module>/<type>/<parents>/<name>."""
    _, module, kind = request.type.split(":")
    name = request.name or request.digest[:12]
    if kind == "ResourceGroup":
        return f"/subscriptions/{subscription(request)}/resourceGroups/{name}"
    parents = [str(request.inputs[one]) for one in _PARENTS if request.inputs.get(one) not in (None, name)]
    return "/".join((f"{group_id(request)}/providers/Microsoft.{module.title()}", kind, *parents, name))


CATALOGUE = Catalogue(
    resources={
        **node_pools.RESOURCES,
        **cluster.RESOURCES,
        RESOURCE_GROUP: _GROUP,
        **iam.RESOURCES,
        **network.RESOURCES,
        **storage.RESOURCES,
    },
    invokes={**api_server.INVOKES, **iam.INVOKES, **node_pools.INVOKES},
    common={
        "name": lambda request: request.name or request.digest[:12],
        "type": lambda request: request.type,
        "provisioningState": lambda _: "Succeeded",
    },
    # The name of a resource is its last path parameter; the resource group is last, because all resources have it.
    name_properties=("resourceName", "accountName", "containerName", "agentPoolName", "resourceGroupName"),
    scopes=frozenset({"resourceGroupName", *_PARENTS}),
    # The real provider appends 8 digits without a separator: many Azure names allow no hyphen.
    autonaming=Autonaming(separator="", digits=8),
    identify=_identify,
    fleets={cluster.CLUSTER: system_machines_of, AGENT_POOL: machines_of},
    known_while_updating=frozenset({"name", "location"}),
    refuse_connection=refuse_connection,
    remarks=where_from,
    messages=Messages(
        taken="cannot create already existing resource '{name}' of {type}",
        missing="Code=ResourceNotFound: The Resource '{id}' of {type} was not found",
    ),
)
