"""What Compute Engine lets machines of a family do."""

from holdfast.scheduling.machines.machine import Machine
from holdfast.scheduling.machines.tables import gcp_table


def boot_disk_of(machine: Machine) -> str:
    """The type of disk that a machine of GCP starts from.

    Newer families take Hyperdisk alone, and older ones none of it.
    """
    boot_disk, _ = gcp_table()["families"][_family(machine)]
    return boot_disk


def can_be_placed_compactly(machine: Machine) -> bool:
    """Whether Compute Engine places machines of this type close to each other when it is asked to."""
    _, compact = gcp_table()["families"][_family(machine)]
    return compact


def _family(machine: Machine) -> str:
    return machine.name.partition("-")[0]
