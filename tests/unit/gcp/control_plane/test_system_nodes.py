"""The system nodes of GKE and the service account of all nodes."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.gcp.control_plane.component import GkeCluster
from pulumi_holdfast.gcp.control_plane.system_nodes import SystemNodesArgs, account_id
from tests.support.builders.gke_components import NODE_ACCOUNT, ZONES, cluster_args, recorded_cluster
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import mapping, text, value

_NAMES = st.from_regex(r"holdfast-[a-z0-9]([a-z0-9-]{0,29}[a-z0-9])?", fullmatch=True)


def test_the_nodes_account_may_write_logs_and_pull_images_before_nodes_start() -> None:
    recording = recorded_cluster()
    assert text(recording.one(":Account"), "accountId") == "holdfast-dev-nodes"
    roles = {text(one, "role"): text(one, "member") for one in recording.of(":IAMMember")}
    assert roles == {
        "roles/container.defaultNodeServiceAccount": f"serviceAccount:{NODE_ACCOUNT}",
        "roles/artifactregistry.reader": f"serviceAccount:{NODE_ACCOUNT}",
    }
    names = {one.name for one in recording.of(":IAMMember")}
    for kind in (":Cluster", ":NodePool"):
        assert names <= recording.everything_before(recording.one(kind))


@given(names=st.lists(_NAMES, min_size=2, max_size=2, unique=True))
def test_account_ids_are_valid_and_never_shared(names: list[str]) -> None:
    for name in names:
        assert re.fullmatch(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", account_id(name)), f"{name}: its ID is rejected"
    assert account_id(names[0]) != account_id(names[1]), "destroying one stack would delete both accounts"


def test_system_nodes_are_on_demand_without_gpus_taints_or_the_nodes_identity() -> None:
    config = mapping(recorded_cluster().one(":NodePool"), "nodeConfig")
    assert text(config, "machineType") == "e2-standard-4"
    assert not {"spot", "preemptible", "guestAccelerators"} & set(config)
    assert mapping(config, "labels") == {"holdfast.dev/system": "true"}
    assert value(config, "taints") is None, "GKE's DNS would not tolerate it, and Ray heads run here too"
    assert mapping(config, "workloadMetadataConfig") == {"mode": "GKE_METADATA"}
    assert text(config, "serviceAccount") == NODE_ACCOUNT, "the default account may edit the project"
    assert mapping(config, "metadata") == {"disable-legacy-endpoints": "true"}
    assert mapping(config, "shieldedInstanceConfig") == {
        "enableSecureBoot": True,
        "enableIntegrityMonitoring": True,
    }


def test_system_nodes_are_in_every_zone_scale_up_and_are_replaced_first() -> None:
    nodes = SystemNodesArgs(machine_type="e2-standard-2", per_zone=2, spare_per_zone=3)
    pool = recorded_cluster(lambda args: replace(args, system_nodes=nodes)).one(":NodePool")
    assert value(pool, "nodeLocations") == list(ZONES), "one zone's outage would stop all operators"
    assert mapping(pool, "autoscaling") == {
        "minNodeCount": 2,
        "maxNodeCount": 5,
        "locationPolicy": "BALANCED",
    }
    assert "initialNodeCount" in pool.ignore_changes
    assert "name" not in pool.inputs, "a fixed name would require deletion first, and stop the operators"
    upgrades = mapping(pool, "upgradeSettings")
    assert (upgrades["maxSurge"], upgrades["maxUnavailable"]) == (1, 0)


@pytest.mark.parametrize("preview", [False, True])
def test_the_clusters_contents_depend_on_the_system_nodes(preview: bool) -> None:
    recording = recorded_cluster(preview=preview)
    way_in = recording.everything_before(recording.one("pulumi:providers:kubernetes"))
    assert {"cluster-system-nodes", "cluster-control-plane-gke"} <= way_in, "charts would wait for nodes"


def test_the_cluster_outputs_are_known() -> None:
    known: list[str] = []

    def build() -> None:
        cluster = GkeCluster("cluster", cluster_args())
        assert cluster.cluster_name == "holdfast-dev"
        assert cluster.workload_pool == "ml.svc.id.goog"
        assert cluster.system_pool is not None
        cluster.workload_identity_issuer.apply(known.append)
        cluster.node_service_account_email.apply(known.append)

    record(build)
    assert sorted(known) == [
        NODE_ACCOUNT,
        "https://container.googleapis.com/v1/projects/ml/locations/europe-west4/clusters/holdfast-dev",
    ]
