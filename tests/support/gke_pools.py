"""A pool of GKE to start from."""

from __future__ import annotations

from holdfast.components.pools.gke import GkePoolArgs
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import machine_catalogue
from holdfast.scheduling.pools import Pool

MACHINES = machine_catalogue("gcp")
ZONES = ("europe-west4-a", "europe-west4-b")
ACCOUNT = "nodes@holdfast-test.iam.gserviceaccount.com"
POOL = "gcp:container/nodePool:NodePool"

A100_SPOT = GkePoolArgs(
    pool=Pool(name="a100-spot", capacity=CapacityType.SPOT, has_gpus=True, max_nodes=8),
    machine=MACHINES["a2-highgpu-8g"],
    zones=ZONES,
    cluster="holdfast-test",
    project="holdfast-test",
    location="europe-west4",
    node_service_account=ACCOUNT,
    upgrades="surge",
    disk_gib=200,
)
CPU = GkePoolArgs(
    pool=Pool(name="cpu", capacity=CapacityType.ON_DEMAND, has_gpus=False, max_nodes=20, is_default=True),
    machine=MACHINES["n2-standard-8"],
    zones=ZONES,
    cluster="holdfast-test",
    project="holdfast-test",
    location="europe-west4",
    node_service_account=ACCOUNT,
    upgrades="surge",
    disk_gib=100,
)
