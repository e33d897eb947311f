"""The nodes of GKE that carry operators: who they are, and what comes before and after them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.components.cluster.gke.component import GkeCluster
from holdfast.components.cluster.gke.system_nodes import SystemNodesArgs, account_id
from tests.support.fakes.pulumi_engine import record
from tests.support.gke_component import NODE_ACCOUNT, ZONES, cluster_args, recorded_cluster
from tests.support.inputs import mapping, text, value

_NAMES = st.from_regex(r"holdfast-[a-z0-9]([a-z0-9-]{0,29}[a-z0-9])?", fullmatch=True)


def test_the_nodes_account_may_log_and_pull_images_and_nothing_else() -> None:
    recording = recorded_cluster()
    assert text(recording.one(":Account"), "accountId") == "holdfast-dev-nodes", "whose nodes are they?"
    roles = {text(one, "role"): text(one, "member") for one in recording.of(":IAMMember")}
    assert roles == {
        "roles/container.defaultNodeServiceAccount": f"serviceAccount:{NODE_ACCOUNT}",
        "roles/artifactregistry.reader": f"serviceAccount:{NODE_ACCOUNT}",
    }, "whoever breaks out of a pod has what its node has"


@given(name=_NAMES)
def test_the_accounts_id_is_one_that_google_takes_whatever_the_clusters_name(name: str) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", account_id(name)), f"{account_id(name)} is refused"


@given(names=st.lists(_NAMES, min_size=2, max_size=2, unique=True))
def test_two_clusters_never_share_an_account(names: list[str]) -> None:
    assert account_id(names[0]) != account_id(names[1]), "one stack's destroy would take the other's nodes"


def test_the_roles_are_there_as_long_as_any_node() -> None:
    recording = recorded_cluster()
    roles = {one.name for one in recording.of(":IAMMember")}
    for kind in (":Cluster", ":NodePool"):
        assert roles <= recording.everything_before(recording.one(kind)), (
            "nodes that start before their roles are never seen healthy"
        )


def test_system_nodes_are_small_on_demand_and_without_gpus() -> None:
    config = mapping(recorded_cluster().one(":NodePool"), "nodeConfig")
    assert text(config, "machineType") == "e2-standard-4", "the machine that was asked for"
    assert not {"spot", "preemptible", "guestAccelerators"} & set(config), (
        "an eviction would take the operators with it, and GKE taints GPU nodes only beside such a pool"
    )
    assert mapping(config, "labels") == {"holdfast.dev/system": "true"}, "operators select it"


def test_system_nodes_have_no_taint() -> None:
    assert value(recorded_cluster().one(":NodePool"), "nodeConfig", "taints") is None, (
        "GKE's own DNS and metrics tolerate none of ours, and Ray's heads live here too"
    )


def test_system_nodes_are_in_every_zone_and_more_come_when_they_are_full() -> None:
    nodes = SystemNodesArgs(machine_type="e2-standard-2", per_zone=2, spare_per_zone=3)
    pool = recorded_cluster(lambda args: replace(args, system_nodes=nodes)).one(":NodePool")
    assert value(pool, "nodeLocations") == list(ZONES), "one zone's outage would take all operators"
    assert mapping(pool, "autoscaling") == {
        "minNodeCount": 2,
        "maxNodeCount": 5,
        "locationPolicy": "BALANCED",
    }, "in each zone: pods that ask for nothing land here as well"
    assert "initialNodeCount" in pool.ignore_changes, "how many there are is the autoscaler's business"


def test_system_nodes_show_pods_no_identity_but_their_own() -> None:
    config = mapping(recorded_cluster().one(":NodePool"), "nodeConfig")
    assert mapping(config, "workloadMetadataConfig") == {"mode": "GKE_METADATA"}, (
        "else every pod can be the node"
    )
    assert text(config, "serviceAccount") == NODE_ACCOUNT, "the default account may edit the project"
    assert mapping(config, "metadata") == {"disable-legacy-endpoints": "true"}, (
        "GKE adds it: a difference for ever"
    )
    assert mapping(config, "shieldedInstanceConfig") == {
        "enableSecureBoot": True,
        "enableIntegrityMonitoring": True,
    }, "a node is what GKE started"


def test_a_pool_that_has_to_be_replaced_is_there_before_the_old_one_goes() -> None:
    pool = recorded_cluster().one(":NodePool")
    assert "name" not in pool.inputs, (
        "a fixed name would have to be given up first, and the operators with it"
    )
    upgrades = mapping(pool, "upgradeSettings")
    assert (upgrades["maxSurge"], upgrades["maxUnavailable"]) == (1, 0), (
        "nor do upgrades leave them without a node"
    )


@pytest.mark.parametrize("preview", [False, True])
def test_what_is_in_the_cluster_finds_system_nodes_and_is_gone_before_them(preview: bool) -> None:
    recording = recorded_cluster(preview=preview)
    way_in = recording.everything_before(recording.one("pulumi:providers:kubernetes"))
    assert {"cluster-system-nodes", "cluster-control-plane-gke"} <= way_in, (
        "a chart waits for nodes that do not come"
    )


def test_what_a_cluster_offers_is_what_was_asked_for() -> None:
    known: list[str] = []

    def build() -> None:
        cluster = GkeCluster("cluster", cluster_args())
        assert cluster.cluster_name == "holdfast-dev", "known on preview"
        assert cluster.workload_pool == "ml.svc.id.goog", "known on preview"
        assert cluster.system_pool is not None, "pools come after it"
        cluster.workload_identity_issuer.apply(known.append)
        cluster.node_service_account_email.apply(known.append)

    record(build)
    assert sorted(known) == [
        NODE_ACCOUNT,
        "https://container.googleapis.com/v1/projects/ml/locations/europe-west4/clusters/holdfast-dev",
    ], "pools have the nodes' account; tokens name this issuer, of clusters in one zone too"
