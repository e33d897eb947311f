"""The machine catalogue: what each instance type offers, what it costs, and where it is sold.

The one source for configuration's checks, for GPU taints, for pool limits and for the instance types which the
simulated clouds sell.
"""

from holdfast.scheduling.machines.attachment import attachable_to, with_attached
from holdfast.scheduling.machines.catalogue import machine_catalogue
from holdfast.scheduling.machines.gcp_families import boot_disk_of, can_be_placed_compactly
from holdfast.scheduling.machines.machine import Architecture, Machine
from holdfast.scheduling.machines.market import LOCAL_ZONES, is_sold_in, regions, regions_of, zones_of
from holdfast.scheduling.machines.selection import select_machines
from holdfast.scheduling.machines.vm_sizes import family_of, select_vm_sizes

__all__ = [
    "LOCAL_ZONES",
    "Architecture",
    "Machine",
    "attachable_to",
    "boot_disk_of",
    "can_be_placed_compactly",
    "family_of",
    "is_sold_in",
    "machine_catalogue",
    "regions",
    "regions_of",
    "select_machines",
    "select_vm_sizes",
    "with_attached",
    "zones_of",
]
