"""The control plane of GKE: network, initial pool, upgrades, encryption and deletion."""

from dataclasses import replace

import pytest

from pulumi_holdfast.gcp.control_plane.control_plane import DatabaseKey, MaintenanceExclusion
from tests.support.builders.gke_components import KEY, MAINTENANCE, NODE_ACCOUNT, recorded_cluster
from tests.support.inputs import mapping, objects, text, value

_CLUSTER = ":Cluster"


def test_pods_have_workload_identities_and_own_addresses_in_the_given_network() -> None:
    recording = recorded_cluster()
    cluster = recording.one(_CLUSTER)
    assert mapping(cluster, "workloadIdentityConfig") == {"workloadPool": "ml.svc.id.goog"}
    assert value(cluster, "addonsConfig", "gcsFuseCsiDriverConfig", "enabled") is True
    assert value(cluster, "datapathProvider") == "ADVANCED_DATAPATH"
    assert mapping(cluster, "ipAllocationPolicy") == {
        "clusterSecondaryRangeName": "pods",
        "servicesSecondaryRangeName": "services",
    }
    assert text(cluster, "network") == "projects/shared/global/networks/ml"
    assert text(cluster, "subnetwork").endswith("/subnetworks/nodes")
    assert not recording.of("Subnetwork")
    scaling = mapping(cluster, "clusterAutoscaling")
    assert scaling == {"enabled": False, "autoscalingProfile": "BALANCED"}


def test_the_initial_pool_has_the_nodes_account_and_never_shows_a_difference() -> None:
    cluster = recorded_cluster().one(_CLUSTER)
    assert cluster.inputs["removeDefaultNodePool"] is True
    assert cluster.inputs["initialNodeCount"] == 1
    assert text(cluster, "nodeConfig", "serviceAccount") == NODE_ACCOUNT
    assert value(cluster, "nodeConfig", "diskType") == "pd-standard"
    assert {"nodeConfig", "initialNodeCount"} <= cluster.ignore_changes
    assert cluster.inputs["skipNodePoolRefresh"] is True


def test_upgrades_run_in_the_window_and_nodes_are_excluded_until_the_end_of_support() -> None:
    cluster = recorded_cluster().one(_CLUSTER)
    assert value(cluster, "releaseChannel", "channel") == "REGULAR"
    assert text(cluster, "minMasterVersion") == "1.36"
    policy = mapping(cluster, "maintenancePolicy")
    assert policy["recurringWindow"] == {
        "startTime": "2026-01-03T00:00:00Z",
        "endTime": "2026-01-03T08:00:00Z",
        "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
    }
    (exclusion,) = objects(policy, "maintenanceExclusions")
    assert exclusion == {
        "exclusionName": "training",
        "startTime": "2026-01-01T00:00:00Z",
        "exclusionOptions": {"scope": "NO_MINOR_OR_NODE_UPGRADES", "endTimeBehavior": "UNTIL_END_OF_SUPPORT"},
    }
    until = MaintenanceExclusion(name="freeze", start="2026-12-01T00:00:00Z", end="2027-01-15T00:00:00Z")
    cluster = recorded_cluster(
        lambda args: replace(args, maintenance=replace(MAINTENANCE, exclusions=[until]))
    ).one(_CLUSTER)
    (exclusion,) = objects(cluster, "maintenancePolicy", "maintenanceExclusions")
    assert text(exclusion, "endTime") == "2027-01-15T00:00:00Z"
    assert mapping(exclusion, "exclusionOptions") == {"scope": "NO_MINOR_OR_NODE_UPGRADES"}


@pytest.mark.parametrize(
    ("location", "zones", "beside"),
    [
        ("europe-west4", ["europe-west4-a", "europe-west4-b"], ["europe-west4-a", "europe-west4-b"]),
        ("europe-west4-a", ["europe-west4-a", "europe-west4-b"], ["europe-west4-b"]),
        ("europe-west4-a", ["europe-west4-a"], None),
    ],
)
def test_a_zonal_control_plane_leaves_its_own_zone_out(
    location: str, zones: list[str], beside: list[str] | None
) -> None:
    cluster = recorded_cluster(lambda args: replace(args, location=location, zones=zones)).one(_CLUSTER)
    assert text(cluster, "location") == location
    assert value(cluster, "nodeLocations") == beside, "its own zone would always show a difference"


def test_the_grant_of_the_key_comes_before_the_cluster_and_is_retained() -> None:
    recording = recorded_cluster(
        lambda args: replace(args, database_key=DatabaseKey(key=KEY, project_number="123456789012"))
    )
    cluster, grant = recording.one(_CLUSTER), recording.one(":CryptoKeyIAMMember")
    assert mapping(cluster, "databaseEncryption") == {"state": "ENCRYPTED", "keyName": KEY}
    assert {name: grant.inputs[name] for name in ("cryptoKeyId", "member", "role")} == {
        "cryptoKeyId": KEY,
        "member": "serviceAccount:service-123456789012@container-engine-robot.iam.gserviceaccount.com",
        "role": "roles/cloudkms.cryptoKeyEncrypterDecrypter",
    }
    assert grant.name in recording.everything_before(cluster), "GKE must be able to use the key first"
    assert grant.retain_on_delete


def test_without_a_customer_key_google_encrypts_with_its_own() -> None:
    recording = recorded_cluster()
    assert value(recording.one(_CLUSTER), "databaseEncryption") is None
    assert not recording.of(":CryptoKeyIAMMember")
