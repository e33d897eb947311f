"""Pools of AKS's scale sets to start from."""

from __future__ import annotations

from holdfast.components.pools.aks import AksPoolArgs
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import machine_catalogue
from holdfast.scheduling.pools import Pool

MACHINES = machine_catalogue("azure")
SUBNET = (
    "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/net/providers/Microsoft.Network/"
    "virtualNetworks/ml/subnets/nodes"
)

A100_SPOT = AksPoolArgs(
    pool=Pool(name="a100-spot", capacity=CapacityType.SPOT, has_gpus=True, max_nodes=8),
    machine=MACHINES["Standard_ND96asr_v4"],
    zones=("1", "2"),
    cluster="holdfast-test",
    resource_group="holdfast-test",
    subnet_id=SUBNET,
    kubernetes_version="1.36",
    disk_gib=256,
    tags={"holdfast-stack": "test"},
)
CPU = AksPoolArgs(
    pool=Pool(name="cpu", capacity=CapacityType.ON_DEMAND, has_gpus=False, max_nodes=20, is_default=True),
    machine=MACHINES["Standard_D8ds_v5"],
    zones=("1", "2"),
    cluster="holdfast-test",
    resource_group="holdfast-test",
    subnet_id=SUBNET,
    kubernetes_version="1.36",
    disk_gib=128,
)
