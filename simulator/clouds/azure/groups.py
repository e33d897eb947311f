"""Resource groups, in which everything on Azure is."""

from collections.abc import Mapping

from holdfast.simulator.clouds.azure.names import RESOURCE_GROUP, subscription
from holdfast.simulator.clouds.catalogue import Making, Rules


def _group_id(making: Making) -> str:
    return f"/subscriptions/{subscription(making)}/resourceGroups/{making.name}"


# Azure deletes whatever is in a group with it. Here it stays, so that a rehearsal shows what the program would have left
# to Azure to delete, in whatever order.
RESOURCES: Mapping[str, Rules] = {
    RESOURCE_GROUP: Rules(
        name_property="resourceGroupName",
        unique_within=(),
        longest_name=90,
        identify=_group_id,
        immutable=frozenset({"location"}),
    ),
}
