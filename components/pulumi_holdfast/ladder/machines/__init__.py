"""The machine catalogue: the resources and price of each instance type, and where it is sold.

The only source for validation of the configuration, GPU taints, pool limits and the instance types of the simulated clouds.
"""

from pulumi_holdfast.ladder.machines.catalogue import (
    Architecture,
    Machine,
    attachable_to,
    attaches_only_hyperdisk,
    boot_disk_of,
    can_be_confidential,
    can_be_placed_compactly,
    machine_catalogue,
    with_attached,
)
from pulumi_holdfast.ladder.machines.market import (
    LOCAL_ZONES,
    family_of,
    is_sold_in,
    regions,
    regions_of,
    select_machines,
    select_vm_sizes,
    zones_of,
    zones_with,
)

__all__ = [
    "LOCAL_ZONES",
    "Architecture",
    "Machine",
    "attachable_to",
    "attaches_only_hyperdisk",
    "boot_disk_of",
    "can_be_confidential",
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
    "zones_with",
]
