"""Azure as AKS's own Karpenter buys from it: what is sold in the location of its cluster."""

import re
from collections.abc import Mapping
from typing import Final

from holdfast.scheduling.machines import Machine, is_sold_in, machine_catalogue, zones_of
from holdfast.simulator.clouds.state import CloudObject
from holdfast.simulator.operator_runner.containers import CannotRunError
from holdfast.simulator.operator_runner.market import instance_types

_LABELS: Final = "karpenter.azure.com"
# Standard_NC24ads_A100_v4: a family, what it adds to that, the vCPUs, what else there is, and a version.
_SIZE: Final = re.compile(r"^Standard_(?P<family>[A-Z])(?P<more>[A-Z]*)\d+[-\d]*(?P<rest>\w*)$", re.ASCII)
_VERSION: Final = re.compile(r"_v(?P<version>\d+)$")


def sold_to(cluster: CloudObject) -> str:
    """List what is sold to a cluster, in the form that Karpenter's simulated provider reads.

    Raises CannotRunError where nothing is known of its location.
    """
    location = str(cluster.outputs.get("location"))
    machines = [one for one in machine_catalogue("azure").values() if is_sold_in(one.name, location)]
    if not machines:
        raise CannotRunError(f"nothing is known to be sold in the location of its cluster, {location}")
    # Where a location has no zones, AKS calls them all by this one.
    return instance_types(machines, zones_of(location) or ("0",), labels=machine_labels)


def machine_labels(machine: Machine) -> Mapping[str, str]:
    """The labels beside Kubernetes' own that Azure's provider puts on a machine's node, as far as they are known."""
    labels = {
        "sku-name": machine.name,
        "sku-cpu": str(machine.vcpus),
        "sku-memory": str(machine.memory_mib),
        "sku-gpu-count": str(machine.gpus),
    }
    named = _SIZE.match(machine.name)
    if named:
        version = _VERSION.search(machine.name)
        labels |= {
            "sku-family": named["family"],
            "sku-series": f"{named['family']}{named['more']}{named['rest']}",
            "sku-version": version["version"] if version else "1",
        }
    if machine.gpus and machine.accelerator:
        labels |= {"sku-gpu-name": machine.accelerator, "sku-gpu-manufacturer": "nvidia"}
    return {f"{_LABELS}/{name}": value for name, value in labels.items()}
