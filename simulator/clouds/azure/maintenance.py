"""When AKS may upgrade a cluster: what it refuses."""

from collections.abc import Mapping
from typing import Final

from holdfast.simulator.clouds.azure.aks import CLUSTER
from holdfast.simulator.clouds.azure.errors import said
from holdfast.simulator.clouds.azure.names import group_id
from holdfast.simulator.clouds.catalogue import Making, Rules
from holdfast.simulator.kubernetes_client.objects import mapping

_MAINTENANCE: Final = "azure-native:containerservice:MaintenanceConfiguration"
#: The only schedule that AKS's own releases take.
_RELEASES: Final = "default"


def _cluster_id(making: Making) -> str:
    name = making.inputs.get("resourceName")
    return f"{group_id(making)}/providers/Microsoft.ContainerService/managedClusters/{name}"


def _maintenance_id(making: Making) -> str:
    return f"{_cluster_id(making)}/maintenanceConfigurations/{making.name}"


def _no_cluster(making: Making) -> str | None:
    if making.inventory.find(CLUSTER, _cluster_id(making)) is not None:
        return None
    return said(
        "ParentResourceNotFound",
        "Failed to perform 'write' on resource of type 'managedClusters/maintenanceConfigurations', because the parent "
        f"resource '{_cluster_id(making)}' could not be found.",
    )


def _bad_window(making: Making) -> str | None:
    window = mapping(making.inputs.get("maintenanceWindow"))
    hours = window.get("durationHours")
    if not isinstance(hours, int | float) or not 4 <= hours <= 24:
        return said("InvalidParameter", f"durationHours is {hours}: it has to be from 4 to 24.")
    schedule = mapping(window.get("schedule"))
    if len(schedule) != 1:
        return said("InvalidParameter", "One and only one of the schedule types should be specified.")
    if making.name == _RELEASES and "weekly" not in schedule:
        return said("InvalidParameter", f"Only a weekly schedule is supported for {_RELEASES}.")
    return None


RESOURCES: Mapping[str, Rules] = {
    _MAINTENANCE: Rules(
        name_property="configName",
        unique_within=("resourceGroupName", "resourceName"),
        identify=_maintenance_id,
        refuse_create=(_no_cluster, _bad_window),
        refuse_update=(_bad_window,),
    ),
}
