"""Azure, put together."""

from rehearsal.providers.cloud.catalogue import Autonaming, Catalogue, Making, Messages

SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"


def _identify(making: Making) -> str:
    """Return a resource id: /subscriptions/…/resourceGroups/<group>/providers/<module>/<type>/<name>."""
    _, module, kind = making.type.split(":")
    name = making.name or making.digest[:12]
    if kind == "ResourceGroup":
        return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}"
    group = making.inputs.get("resourceGroupName", "")
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.{module.title()}/{kind}/{name}"


CATALOGUE = Catalogue(
    common={
        "name": lambda making: making.name or making.digest[:12],
        "type": lambda making: making.type,
        "provisioningState": lambda _: "Succeeded",
    },
    # A resource's own name is its last path parameter; a resource group's comes last because all others name it too.
    name_properties=("resourceName", "accountName", "containerName", "agentPoolName", "resourceGroupName"),
    scopes=frozenset({"resourceGroupName"}),
    # The real provider appends 8 digits without a separator: many Azure names allow no hyphen.
    autonaming=Autonaming(separator="", digits=8),
    identify=_identify,
    messages=Messages(
        taken="Code=Conflict: cannot create already existing resource '{name}' of {type}",
        missing="Code=ResourceNotFound: The Resource '{id}' of {type} was not found",
        throttled="Code=TooManyRequests: The request was throttled",
    ),
)
