"""The fast networks between machines: which machine types have one, and the warnings about those that a stack does not set up.

Eight GPUs produce more data in each step than TCP transfers, so a job on several nodes mostly waits for its network. A
preview warns about every such pool.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.machines.catalogue import Machine

#: Machine types of Google Cloud with network cards of their own for GPUs.
_GOOGLE: Final = {
    "a3-highgpu-8g": "GPUDirect-TCPX",
    "a3-megagpu-8g": "GPUDirect-TCPXO",
    "a3-ultragpu-8g": "GPUDirect RDMA",
    "a4-highgpu-8g": "GPUDirect RDMA",
    "a4x-highgpu-4g": "GPUDirect RDMA",
}

#: Sizes of Azure's ND series whose name has the letter of RDMA behind the number of vCPUs: ND96isr_H100_v5.
_INFINIBAND: Final = re.compile(r"Standard_ND\d+[a-z]*r[a-z]*_\w+", re.ASCII)

_NEEDS: Final = {
    "GPUDirect": "additional networks with jumbo frames, and Google's NCCL plugin on the nodes",
    "InfiniBand": "the feature AKSInfinibandSupport, NVIDIA's network operator and its devices in the pods",
}


def fast_network_of(machine: Machine) -> str | None:
    """The fast network that a machine has between machines of its type; None for TCP only."""
    if machine.efa_interfaces:
        return "Elastic Fabric Adapter"
    return _GOOGLE.get(machine.name) or ("InfiniBand" if _INFINIBAND.fullmatch(machine.name) else None)


def unused_network_warnings(
    pool: str, machines: Sequence[Machine], *, max_nodes: int, uses_adapters: bool = False
) -> Iterator[str]:
    """The warning about a pool of GPU machines whose fast network is not used, although a gang may span its nodes.

    `uses_adapters`: the pool has Elastic Fabric Adapters.
    """
    found = {machine.name: network for machine in machines if (network := fast_network_of(machine))}
    gpus = any(machine.gpus for machine in machines)
    if not found or not gpus or max_nodes < 2 or uses_adapters:
        return
    listed = ", ".join(f"{name} has {network}" for name, network in found.items())
    network = next(iter(found.values())).partition("-")[0].partition(" ")[0]
    fix = (
        "Write `efa: true` to use it."
        if network == "Elastic"
        else f"The stack does not set it up: it needs {_NEEDS[network]}. Run each job on one node, or expect its nodes to wait for "
        "their network."
    )
    yield f"pool {pool}: jobs on several nodes communicate by TCP only ({listed}). {fix}"
