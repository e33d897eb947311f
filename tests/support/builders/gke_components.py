"""A valid GKE cluster and valid node pools; tests override single arguments."""

from collections.abc import Callable
from dataclasses import replace

from pulumi_holdfast.gcp.control_plane.access import DnsEndpoint
from pulumi_holdfast.gcp.control_plane.component import GkeCluster, GkeClusterArgs
from pulumi_holdfast.gcp.control_plane.control_plane import Maintenance, MaintenanceExclusion
from pulumi_holdfast.gcp.control_plane.system_nodes import SystemNodesArgs
from pulumi_holdfast.gcp.network import ExistingGcpNetwork
from pulumi_holdfast.gcp.pools import GkePoolArgs
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.pools import Pool
from tests.support.fakes.pulumi_engine import Recording, record, recorded_once

PROJECT = "ml"
REGION = "europe-west4"
ZONES = ("europe-west4-a", "europe-west4-b", "europe-west4-c")
KEY = "projects/keys/locations/europe-west4/keyRings/holdfast/cryptoKeys/gke"
NODE_ACCOUNT = "holdfast-dev-nodes@ml.iam.gserviceaccount.com"

MAINTENANCE = Maintenance(
    start="2026-01-03T00:00:00Z",
    end="2026-01-03T08:00:00Z",
    recurrence="FREQ=WEEKLY;BYDAY=SA,SU",
    exclusions=[MaintenanceExclusion(name="training", start="2026-01-01T00:00:00Z")],
)


def cluster_args() -> GkeClusterArgs:
    """A deletable regional cluster with a DNS endpoint in an existing network."""
    return GkeClusterArgs(
        cluster_name="holdfast-dev",
        project=PROJECT,
        location=REGION,
        zones=ZONES,
        network=ExistingGcpNetwork(
            network="projects/shared/global/networks/ml",
            subnetwork=f"projects/shared/regions/{REGION}/subnetworks/nodes",
            pods_range="pods",
            services_range="services",
        ),
        version="1.36",
        channel="REGULAR",
        maintenance=MAINTENANCE,
        access=DnsEndpoint(allow_external=True),
        system_nodes=SystemNodesArgs(machine_type="e2-standard-4"),
        protected=False,
    )


def recorded_cluster(
    change: Callable[[GkeClusterArgs], GkeClusterArgs] = lambda args: args, *, preview: bool = False
) -> Recording:
    """What a cluster registers; `change` replaces its valid arguments."""
    args = change(cluster_args())
    return recorded_once(
        (repr(args), preview), lambda: record(lambda: GkeCluster("cluster", args), preview=preview)
    )


MACHINES = machine_catalogue("gcp")
POOL_ZONES = ("europe-west4-a", "europe-west4-b")
ACCOUNT = "nodes@holdfast-test.iam.gserviceaccount.com"
POOL = "gcp:container/nodePool:NodePool"

A100_SPOT = GkePoolArgs(
    pool=Pool(name="a100-spot", capacity=CapacityType.SPOT, has_gpus=True, max_nodes=8),
    machine=MACHINES["a2-highgpu-8g"],
    zones=POOL_ZONES,
    cluster="holdfast-test",
    project="holdfast-test",
    location="europe-west4",
    node_service_account=ACCOUNT,
    upgrades="surge",
    disk_gib=200,
)
CPU = replace(
    A100_SPOT,
    pool=Pool(name="cpu", capacity=CapacityType.ON_DEMAND, has_gpus=False, max_nodes=20, is_default=True),
    machine=MACHINES["n2-standard-8"],
    disk_gib=100,
)
