"""An instance type."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

#: As Kubernetes spells them.
Architecture: TypeAlias = Literal["amd64", "arm64"]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """An instance type. Memory in MiB, price in USD an hour, on demand.

    `accelerator` is the kind of its GPUs as its cloud spells it (`a100` on AWS and Azure, `nvidia-tesla-a100` on GCP), None where it
    has none; `arch` the instruction set of its processors; `efa_interfaces` how many Elastic Fabric Adapters it can have;
    `local_ssds` how many local disks it brings that Compute Engine attaches by itself; `on_spot` and `on_demand` whether it is ever sold that way.
    """

    name: str
    vcpus: int
    memory_mib: int
    gpus: int
    hourly_price: float
    arch: Architecture = "amd64"
    accelerator: str | None = None
    efa_interfaces: int = 0
    local_ssds: int = 0
    on_spot: bool = True
    on_demand: bool = True
