"""The control plane of GKE: network, initial pool, upgrades, encryption and deletion."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.gcp.control_plane.access import AuthorizedNetworks, ControlPlaneAccess, DnsEndpoint
from pulumi_holdfast.gcp.control_plane.component import GkeCluster
from pulumi_holdfast.gcp.control_plane.control_plane import DatabaseKey, MaintenanceExclusion
from pulumi_holdfast.gcp.control_plane.system_nodes import SystemNodesArgs, account_id
from pulumi_holdfast.ladder.json import Json
from tests.support.builders.gke_components import (
    KEY,
    MAINTENANCE,
    NODE_ACCOUNT,
    ZONES,
    cluster_args,
    recorded_cluster,
)
from tests.support.fakes.cloud_outputs import AUTHORITY, GKE_ADDRESS
from tests.support.fakes.pulumi_engine import Recorded, record
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


def cluster(access: ControlPlaneAccess) -> Recorded:
    return recorded_cluster(lambda args: replace(args, access=access)).one(":Cluster")


def test_with_a_dns_endpoint_there_is_no_ip_endpoint() -> None:
    made = cluster(DnsEndpoint(allow_external=True))
    assert mapping(made, "controlPlaneEndpointsConfig") == {
        "dnsEndpointConfig": {"allowExternalTraffic": True},
        "ipEndpointsConfig": {"enabled": False},
    }
    assert mapping(made, "privateClusterConfig") == {"enablePrivateNodes": True}
    assert value(made, "masterAuthorizedNetworksConfig") is None


def test_access_that_is_closed_to_all_or_without_a_range_is_rejected() -> None:
    with pytest.raises(ValueError, match="use AuthorizedNetworks"):
        DnsEndpoint(allow_external=False)
    with pytest.raises(ValueError, match="add a range"):
        AuthorizedNetworks(cidrs=[])


def test_public_ranges_have_a_public_endpoint_for_them_only() -> None:
    made = cluster(AuthorizedNetworks(cidrs=["203.0.113.0/24", "10.0.0.0/8"]))
    assert value(made, "controlPlaneEndpointsConfig", "dnsEndpointConfig", "allowExternalTraffic") is False
    assert mapping(made, "privateClusterConfig") == {
        "enablePrivateNodes": True,
        "enablePrivateEndpoint": False,
    }
    networks = mapping(made, "masterAuthorizedNetworksConfig")
    assert [text(one, "cidrBlock") for one in objects(networks, "cidrBlocks")] == [
        "203.0.113.0/24",
        "10.0.0.0/8",
    ]
    assert networks["gcpPublicCidrsAccessEnabled"] is False, "it would allow all of Google Cloud's addresses"
    assert networks["privateEndpointEnforcementEnabled"] is True, "otherwise every pod is allowed"


def test_private_ranges_have_no_public_endpoint_and_the_clusters_own_authority() -> None:
    made = cluster(AuthorizedNetworks(cidrs=["10.0.0.0/8", "100.64.0.0/10"]))
    assert value(made, "privateClusterConfig", "enablePrivateEndpoint") is True
    assert "gcpPublicCidrsAccessEnabled" not in mapping(made, "masterAuthorizedNetworksConfig")
    recording = recorded_cluster(lambda args: replace(args, access=AuthorizedNetworks(cidrs=["10.0.0.0/8"])))
    document: Json = json.loads(text(recording.one("pulumi:providers:kubernetes"), "kubeconfig"))
    (found,), (user,) = objects(document, "clusters"), objects(document, "users")
    assert mapping(found, "cluster") == {
        "server": f"https://{GKE_ADDRESS}",
        "certificate-authority-data": AUTHORITY,
    }
    hint = text(user, "user", "exec", "installHint")
    assert "gcloud components install" in hint


@pytest.mark.parametrize(
    "access", [DnsEndpoint(allow_external=True), AuthorizedNetworks(cidrs=["10.0.0.0/8"])]
)
def test_in_a_preview_the_api_server_of_a_new_cluster_is_unknown(access: ControlPlaneAccess) -> None:
    recording = recorded_cluster(lambda args: replace(args, access=access), preview=True)
    provider = recording.one("pulumi:providers:kubernetes")
    unknown = {name: provider.inputs.get(name) for name in ("kubeconfig", "clusterIdentifier")}
    assert not any(isinstance(each, str) and "None" in each for each in unknown.values())


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
