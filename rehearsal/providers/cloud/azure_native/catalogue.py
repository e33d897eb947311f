"""Azure, put together."""

from rehearsal.providers.cloud.catalogue import Autonaming, Catalogue, Making, Messages

SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"


# What a nested resource is part of, by the input that names it; the resource group comes first in every id.
_PARENTS = ("accountName", "resourceName")


def _identify(making: Making) -> str:
    """Return a resource id: /subscriptions/…/resourceGroups/<group>/providers/<module>/<type>/<parents>/<name>."""
    _, module, kind = making.type.split(":")
    name = making.name or making.digest[:12]
    if kind == "ResourceGroup":
        return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}"
    parents = [str(making.inputs[one]) for one in _PARENTS if making.inputs.get(one) not in (None, name)]
    group = making.inputs.get("resourceGroupName", "")
    path = "/".join((f"Microsoft.{module.title()}", kind, *parents, name))
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/{path}"


CATALOGUE = Catalogue(
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
    messages=Messages(
        taken="Code=Conflict: cannot create already existing resource '{name}' of {type}",
        missing="Code=ResourceNotFound: The Resource '{id}' of {type} was not found",
        throttled="Code=TooManyRequests: The request was throttled",
    ),
)
