"""A GKE cluster on the real engine: created in a valid order, unchanged by a second up, protected, deleted completely."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pulumi
import pytest

from pulumi_holdfast.gcp.control_plane.access import AuthorizedNetworks, DnsEndpoint
from pulumi_holdfast.gcp.control_plane.component import GkeCluster, GkeClusterArgs
from pulumi_holdfast.gcp.control_plane.control_plane import DatabaseKey
from pulumi_holdfast.gcp.network import GcpNetwork, GcpNetworkArgs
from tests.support.builders.gke_components import KEY, PROJECT, REGION, cluster_args
from tests.support.clusters.cloud_program import CloudProgram, create_once, destroy_once_released

pytestmark = [
    pytest.mark.engine,
    # Importing an SDK module imports the deprecated types in it as well.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pulumi_"),
]

_CLUSTER = "gcp:container/cluster:Cluster"
_POOL = "gcp:container/nodePool:NodePool"
_GRANT = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    return CloudProgram(
        root=tmp_path, packages=("gcp", "kubernetes"), config={"gcp:project": PROJECT, "gcp:region": REGION}
    )


def program(change: Callable[[GkeClusterArgs], GkeClusterArgs] = replace) -> Callable[[], None]:
    """A network, a cluster in it, and something inside."""

    def run() -> None:
        from pulumi_kubernetes.core.v1 import ConfigMap

        network = GcpNetwork(
            "network",
            GcpNetworkArgs(
                region=REGION,
                nodes_cidr="10.40.0.0/20",
                pods_cidr="10.44.0.0/14",
                services_cidr="10.40.16.0/20",
                label="holdfast-dev",
            ),
        )
        cluster = GkeCluster("cluster", change(replace(cluster_args(), network=network)))
        ConfigMap("inside", opts=pulumi.ResourceOptions(provider=cluster.kubernetes))
        pulumi.export("issuer", cluster.workload_identity_issuer)
        pulumi.export("nodes", cluster.node_service_account_email)

    return run


def protected(args: GkeClusterArgs) -> GkeClusterArgs:
    return replace(args, protected=True)


def test_a_cluster_is_created_once_and_destroyed_only_without_protection(stack: CloudProgram) -> None:
    made = create_once(stack, program(protected))
    (cluster,) = stack.objects(_CLUSTER)
    assert cluster.id == "projects/ml/locations/europe-west4/clusters/holdfast-dev"
    assert made.outputs["nodes"] == "holdfast-dev-nodes@ml.iam.gserviceaccount.com"
    (pool,) = stack.objects(_POOL)
    assert json.dumps(pool.inputs["nodeConfig"]).count("holdfast-dev-nodes@") == 1
    destroy_once_released(stack, program(protected), program())


def test_a_cluster_is_opened_closed_and_upgraded_in_place(stack: CloudProgram) -> None:
    stack.up(program())

    def changed(args: GkeClusterArgs) -> GkeClusterArgs:
        return replace(
            args,
            version="1.37",
            channel="STABLE",
            access=AuthorizedNetworks(cidrs=["203.0.113.0/24"]),
            system_nodes=replace(args.system_nodes, machine_type="e2-standard-8"),
        )

    outcome = stack.up(program(changed))
    assert "replace" not in outcome.changes, "the cluster would be lost, or its operators for a while"
    (cluster,) = stack.objects(_CLUSTER)
    assert str(cluster.computed["masterVersion"]).startswith("1.37.")
    assert stack.up(program(changed)).changed == 0


def test_another_access_mode_keeps_the_objects_of_the_cluster(stack: CloudProgram) -> None:
    stack.up(program())
    by_name = program(lambda args: replace(args, access=DnsEndpoint(allow_external=True)))
    outcome = stack.up(by_name)
    assert "replace" not in outcome.changes
    assert stack.up(by_name).changed == 0


def test_another_account_of_the_first_pool_never_replaces_the_cluster(stack: CloudProgram) -> None:
    stack.up(program())
    with stack.cloud("gcp").changing() as inventory:
        (cluster,) = inventory.of_type(_CLUSTER)
        # What GKE shows once its first pool is gone: the configuration of another one.
        shown = {**cluster.inputs, "nodeConfig": {"machineType": "a3-highgpu-8g"}, "initialNodeCount": 0}
        inventory.put(replace(cluster, inputs=shown))
    stack.refresh(program())
    outcome = stack.up(program())
    assert "replace" not in outcome.changes, "the cluster would go with everything in it"
    assert stack.objects(_CLUSTER)[0].digest == cluster.digest


def test_a_key_is_granted_before_the_cluster_and_kept_granted_after_it(stack: CloudProgram) -> None:
    def with_key(args: GkeClusterArgs) -> GkeClusterArgs:
        return replace(args, database_key=DatabaseKey(key=KEY, project_number="123456789012"))

    stack.up(program(with_key))
    stack.destroy(program(with_key))
    left = stack.cloud("gcp").read().all()
    assert [one.type for one in left] == [_GRANT]
    stack.up(program(with_key))
    assert len(stack.objects(_CLUSTER)) == 1
