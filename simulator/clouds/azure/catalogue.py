"""Azure, put together."""

from holdfast.simulator.clouds.azure import (
    agent_pools,
    aks,
    groups,
    identity,
    identity_credentials,
    maintenance,
    network,
    storage,
    system_nodes,
)
from holdfast.simulator.clouds.azure.api_server import refuse_connection, where_from
from holdfast.simulator.clouds.azure.names import group_id, subscription
from holdfast.simulator.clouds.azure.nodes import AGENT_POOL, machines_of
from holdfast.simulator.clouds.catalogue import Autonaming, Catalogue, Making, Messages

# What a nested resource is part of, by the input that names it; the resource group comes first in every id.
_PARENTS = ("accountName", "resourceName")


def _identify(making: Making) -> str:
    """Return a resource id: /subscriptions/…/resourceGroups/<group>/providers/<module>/<type>/<parents>/<name>."""
    _, module, kind = making.type.split(":")
    name = making.name or making.digest[:12]
    if kind == "ResourceGroup":
        return f"/subscriptions/{subscription(making)}/resourceGroups/{name}"
    parents = [str(making.inputs[one]) for one in _PARENTS if making.inputs.get(one) not in (None, name)]
    return "/".join((f"{group_id(making)}/providers/Microsoft.{module.title()}", kind, *parents, name))


CATALOGUE = Catalogue(
    resources={
        **agent_pools.RESOURCES,
        **aks.RESOURCES,
        **groups.RESOURCES,
        **identity.RESOURCES,
        **identity_credentials.RESOURCES,
        **maintenance.RESOURCES,
        **network.RESOURCES,
        **storage.RESOURCES,
    },
    invokes={**aks.INVOKES, **identity.INVOKES},
    common={
        "name": lambda making: making.name or making.digest[:12],
        "type": lambda making: making.type,
        "provisioningState": lambda _: "Succeeded",
    },
    # A resource's own name is its last path parameter; a resource group's comes last because all others name it too.
    name_properties=("resourceName", "accountName", "containerName", "agentPoolName", "resourceGroupName"),
    scopes=frozenset({"resourceGroupName", *_PARENTS}),
    # The real provider appends 8 digits without a separator: many Azure names allow no hyphen.
    autonaming=Autonaming(separator="", digits=8),
    identify=_identify,
    fleets={aks.CLUSTER: system_nodes.machines_of, AGENT_POOL: machines_of},
    known_while_updating=frozenset({"name", "location"}),
    refuse_connection=refuse_connection,
    remarks=where_from,
    messages=Messages(
        taken="cannot create already existing resource '{name}' of {type}",
        missing="Code=ResourceNotFound: The Resource '{id}' of {type} was not found",
        throttled="Code=TooManyRequests: The request was throttled",
    ),
)
