"""The two environments of this repository: one to try things in, one to rely on."""

from __future__ import annotations

from tests.support.gcp_stacks import stack
from tests.support.inputs import value

#: They serve every cluster and every bucket of the project that has the key.
GRANTS = {"cluster-key-grant", "checkpoints-key-use"}


def test_what_cannot_be_had_back_is_protected_in_production_and_nothing_else() -> None:
    protected = {found.name for found in stack("gcp-prod") if found.protect}
    assert protected == {"cluster-control-plane-gke", "checkpoints-bucket"}, "the cluster, and checkpoints"


def test_checkpoints_outlive_a_production_stack_even_once_it_may_go() -> None:
    kept = {found.name for found in stack("gcp-prod") if found.retain_on_delete}
    assert kept == {"checkpoints-bucket", *GRANTS}, "with the grant without which nobody reads them"
    assert value(stack("gcp-prod").one(":Bucket"), "forceDestroy") is False, (
        "Cloud Storage refuses to delete it as well"
    )


def test_the_cluster_of_production_refuses_to_go_by_hand_too() -> None:
    assert value(stack("gcp-prod").one(":Cluster"), "deletionProtection") is True, (
        "whoever lifts Pulumi's protection alone has not meant it"
    )


def test_development_can_go_without_a_trace() -> None:
    recording = stack("gcp-dev")
    assert not [found.name for found in recording if found.protect], "nothing is protected"
    assert not [found.name for found in recording if found.retain_on_delete], "and nothing stays"
    assert value(recording.one(":Bucket"), "forceDestroy") is True, "its checkpoints go with it"
    assert value(recording.one(":Cluster"), "deletionProtection") is False, "nor does the provider refuse"


def test_production_has_no_way_in_from_the_internet() -> None:
    cluster = stack("gcp-prod").one(":Cluster")
    assert value(cluster, "privateClusterConfig", "enablePrivateEndpoint") is True, "no public address"
    assert (
        value(cluster, "controlPlaneEndpointsConfig", "dnsEndpointConfig", "allowExternalTraffic") is False
    ), "and no name that answers"
    assert value(cluster, "masterAuthorizedNetworksConfig", "cidrBlocks") == [
        {"cidrBlock": "10.48.0.0/20"}
    ], "but for whoever is named"


def test_development_is_reached_from_named_addresses_only() -> None:
    cluster = stack("gcp-dev").one(":Cluster")
    assert value(cluster, "masterAuthorizedNetworksConfig", "cidrBlocks") == [
        {"cidrBlock": "203.0.113.0/24"}
    ], "not from everywhere"
    assert value(cluster, "masterAuthorizedNetworksConfig", "gcpPublicCidrsAccessEnabled") is False, (
        "nor from every machine on Google Cloud"
    )


def test_production_outlives_a_zone_and_development_is_in_one() -> None:
    assert value(stack("gcp-prod").one(":Cluster"), "location") == "us-central1", "a control plane in each"
    assert value(stack("gcp-dev").one(":Cluster"), "location") == "us-central1-a", "one is free of charge"


def test_production_is_encrypted_with_keys_of_the_users_own() -> None:
    keys = "projects/holdfast-prod/locations/us-central1/keyRings/holdfast/cryptoKeys"
    assert value(stack("gcp-prod").one(":Cluster"), "databaseEncryption") == {
        "state": "ENCRYPTED",
        "keyName": f"{keys}/cluster",
    }, "as it is written"
    assert (
        value(stack("gcp-prod").one(":Bucket"), "encryption", "defaultKmsKeyName") == f"{keys}/checkpoints"
    ), "each its own"


def test_nodes_of_production_are_upgraded_only_when_somebody_wants_it() -> None:
    policy = value(stack("gcp-prod").one(":Cluster"), "maintenancePolicy", "maintenanceExclusions")
    assert policy == [
        {
            "exclusionName": "training",
            "startTime": "2026-12-01T00:00:00Z",
            "exclusionOptions": {
                "scope": "NO_MINOR_OR_NODE_UPGRADES",
                "endTimeBehavior": "UNTIL_END_OF_SUPPORT",
            },
        }
    ], "a fixed day: one that moves would be a change in every plan"
