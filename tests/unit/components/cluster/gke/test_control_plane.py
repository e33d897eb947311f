"""The control plane of GKE: what it is made of, what it keeps secret, and how it is let go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.components.cluster.gke.control_plane import DatabaseKey, MaintenanceExclusion
from tests.support.gke_component import KEY, MAINTENANCE, NODE_ACCOUNT, recorded_cluster
from tests.support.inputs import mapping, objects, text, value

_CLUSTER = ":Cluster"


def test_pods_get_their_own_identities_and_addresses_on_dataplane_v2() -> None:
    cluster = recorded_cluster().one(_CLUSTER)
    assert mapping(cluster, "workloadIdentityConfig") == {"workloadPool": "ml.svc.id.goog"}, (
        "without it pods are whoever the node is"
    )
    assert value(cluster, "datapathProvider") == "ADVANCED_DATAPATH", (
        "network policies work without an add-on"
    )
    assert mapping(cluster, "ipAllocationPolicy") == {
        "clusterSecondaryRangeName": "pods",
        "servicesSecondaryRangeName": "services",
    }, "VPC-native: the ranges of the subnetwork, and none that GKE adds to it"


def test_the_cluster_is_in_the_network_it_is_given() -> None:
    recording = recorded_cluster()
    cluster = recording.one(_CLUSTER)
    assert text(cluster, "network") == "projects/shared/global/networks/ml", "another network"
    assert text(cluster, "subnetwork").endswith("/subnetworks/nodes"), "another subnetwork"
    assert not recording.of("Subnetwork"), "none is made here"


def test_gkes_first_pool_has_the_nodes_own_account_and_goes_at_once() -> None:
    cluster = recorded_cluster().one(_CLUSTER)
    assert cluster.inputs["removeDefaultNodePool"] is True, "a pool that nobody asked for stays"
    assert cluster.inputs["initialNodeCount"] == 1, "GKE makes no cluster without"
    assert text(cluster, "nodeConfig", "serviceAccount") == NODE_ACCOUNT, (
        "Compute Engine's default account may be disabled, and the cluster is then never made"
    )
    assert value(cluster, "nodeConfig", "diskType") == "pd-standard", (
        "a new project's quota of SSD would be spent on a pool that lives a minute"
    )


@pytest.mark.parametrize("setting", ["nodeConfig", "initialNodeCount"])
def test_what_describes_the_first_pool_never_replaces_the_cluster(setting: str) -> None:
    assert setting in recorded_cluster().one(_CLUSTER).ignore_changes, (
        "GKE shows other nodes there once the first are gone: a difference replaces the cluster with all in it"
    )


def test_pools_that_come_later_are_no_difference_of_the_cluster() -> None:
    assert recorded_cluster().one(_CLUSTER).inputs["skipNodePoolRefresh"] is True, (
        "each refresh would show the cluster changed by its own pools"
    )


def test_the_autoscaler_never_moves_pods_to_empty_a_node() -> None:
    scaling = mapping(recorded_cluster().one(_CLUSTER), "clusterAutoscaling")
    assert scaling == {"enabled": False, "autoscalingProfile": "BALANCED"}, (
        "the other profile evicts training pods to save a machine; and nodes are our pools' business"
    )


def test_upgrades_come_in_the_window_and_leave_nodes_alone_until_the_version_is_no_longer_supported() -> None:
    cluster = recorded_cluster().one(_CLUSTER)
    assert value(cluster, "releaseChannel", "channel") == "REGULAR", "GKE keeps the control plane patched"
    assert text(cluster, "minMasterVersion") == "1.36", "the channel goes on from there"
    policy = mapping(cluster, "maintenancePolicy")
    assert policy["recurringWindow"] == {
        "startTime": "2026-01-03T00:00:00Z",
        "endTime": "2026-01-03T08:00:00Z",
        "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
    }, "in UTC, as GKE answers: another spelling is a difference for ever"
    (exclusion,) = objects(policy, "maintenanceExclusions")
    assert exclusion == {
        "exclusionName": "training",
        "startTime": "2026-01-01T00:00:00Z",
        "exclusionOptions": {
            "scope": "NO_MINOR_OR_NODE_UPGRADES",
            "endTimeBehavior": "UNTIL_END_OF_SUPPORT",
        },
    }, "an upgrade of nodes evicts training pods after an hour in spite of disruption budgets"


def test_an_exclusion_with_an_end_has_no_other_end() -> None:
    until = MaintenanceExclusion(name="freeze", start="2026-12-01T00:00:00Z", end="2027-01-15T00:00:00Z")
    cluster = recorded_cluster(
        lambda args: replace(args, maintenance=replace(MAINTENANCE, exclusions=[until]))
    ).one(_CLUSTER)
    (exclusion,) = objects(cluster, "maintenancePolicy", "maintenanceExclusions")
    assert text(exclusion, "endTime") == "2027-01-15T00:00:00Z", "GKE is told until when"
    assert mapping(exclusion, "exclusionOptions") == {"scope": "NO_MINOR_OR_NODE_UPGRADES"}, (
        "GKE takes one of both, and refuses both"
    )


@pytest.mark.parametrize(
    ("location", "zones", "beside"),
    [
        ("europe-west4", ["europe-west4-a", "europe-west4-b"], ["europe-west4-a", "europe-west4-b"]),
        ("europe-west4-a", ["europe-west4-a", "europe-west4-b"], ["europe-west4-b"]),
        ("europe-west4-a", ["europe-west4-a"], None),
    ],
)
def test_a_control_plane_in_one_zone_leaves_that_one_away(
    location: str, zones: list[str], beside: list[str] | None
) -> None:
    cluster = recorded_cluster(lambda args: replace(args, location=location, zones=zones)).one(_CLUSTER)
    assert text(cluster, "location") == location, "regional or zonal as was asked"
    assert value(cluster, "nodeLocations") == beside, "named again, its own zone is a difference for ever"


def test_without_a_key_of_the_users_google_encrypts_by_itself() -> None:
    recording = recorded_cluster()
    assert value(recording.one(_CLUSTER), "databaseEncryption") is None, "no key was given"
    assert not recording.of(":CryptoKeyIAMMember"), "nothing is granted"


def test_the_service_agent_may_use_the_key_before_the_cluster_needs_it_and_after_it_is_gone() -> None:
    recording = recorded_cluster(
        lambda args: replace(args, database_key=DatabaseKey(key=KEY, project_number="123456789012"))
    )
    cluster, grant = recording.one(_CLUSTER), recording.one(":CryptoKeyIAMMember")
    assert mapping(cluster, "databaseEncryption") == {"state": "ENCRYPTED", "keyName": KEY}, "another key"
    assert {name: grant.inputs[name] for name in ("cryptoKeyId", "member", "role")} == {
        "cryptoKeyId": KEY,
        "member": "serviceAccount:service-123456789012@container-engine-robot.iam.gserviceaccount.com",
        "role": "roles/cloudkms.cryptoKeyEncrypterDecrypter",
    }, "GKE's own agent of the project uses the key"
    assert grant.name in recording.everything_before(cluster), "GKE makes no cluster with a key it cannot use"
    assert grant.retain_on_delete, "the grant is the whole project's: another cluster would lose its database"


def test_a_protected_cluster_cannot_be_deleted_by_pulumi_or_its_provider() -> None:
    cluster = recorded_cluster(lambda args: replace(args, protected=True)).one(_CLUSTER)
    assert cluster.protect, "pulumi destroy must refuse it"
    assert cluster.inputs["deletionProtection"] is True, "the provider must refuse it too"


def test_an_unprotected_cluster_goes_without_further_ado() -> None:
    recording = recorded_cluster()
    assert not [one.name for one in recording if one.protect], "nothing is in the way of a destroy"
    assert recording.one(_CLUSTER).inputs["deletionProtection"] is False, (
        "left out, the provider protects a cluster by itself"
    )
