"""GPUs that are attached to a machine which brings none: on GCP, to those of the N1 family."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from holdfast.scheduling.machines.machine import Machine
from holdfast.scheduling.machines.tables import gcp_table

_FAMILY: Final = "n1-"


def attachable_to(machine: Machine) -> Mapping[str, tuple[int, ...]]:
    """How many GPUs of which kind a machine of GCP can be given; nothing for one that takes none.

    Fewer GPUs go with fewer vCPUs: a machine of more takes more of them or none.
    """
    if not machine.name.startswith(_FAMILY):
        return {}
    counts = {
        kind: tuple(int(count) for count, most_vcpus in limits.items() if machine.vcpus <= most_vcpus)
        for kind, (_, limits) in gcp_table()["attachable"].items()
    }
    return {kind: fitting for kind, fitting in counts.items() if fitting}


def with_attached(machine: Machine, kind: str, count: int) -> Machine:
    """The machine with GPUs attached. Raises ValueError where Compute Engine would not attach them."""
    fitting = attachable_to(machine)
    if count not in fitting.get(kind, ()):
        takes = ", ".join(
            f"{' or '.join(map(str, counts))} {known}" for known, counts in sorted(fitting.items())
        )
        raise ValueError(f"{machine.name} cannot have {count} {kind} attached; it takes {takes or 'none'}")
    price, _ = gcp_table()["attachable"][kind]
    return replace(
        machine,
        gpus=count,
        accelerator=kind,
        hourly_price=round(machine.hourly_price + count * price, 6),
    )
