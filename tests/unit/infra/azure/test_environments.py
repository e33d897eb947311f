"""The two environments of this repository: one to try things in, one to rely on."""

from __future__ import annotations

from tests.support.azure_documents import SUBSCRIPTION
from tests.support.azure_stacks import stack
from tests.support.inputs import objects, text, value

CHECKPOINTS = {
    "checkpoints-group",
    "checkpoints",
    "checkpoints-service",
    "checkpoints-lifecycle",
    "checkpoints-vision",
    "checkpoints-tabular",
}


def test_what_cannot_be_had_back_is_protected_in_production_and_nothing_else() -> None:
    protected = {found.name for found in stack("azure-prod") if found.protect}
    assert protected == {"group-group", "cluster-control-plane-aks", *CHECKPOINTS}, (
        "the cluster, the group that takes it along, and checkpoints"
    )


def test_checkpoints_outlive_a_production_stack_even_once_it_may_go() -> None:
    kept = {found.name for found in stack("azure-prod") if found.retain_on_delete}
    assert kept == CHECKPOINTS, "with all that guards them, in a group that nothing else takes along"


def test_development_can_go_without_a_trace() -> None:
    recording = stack("azure-dev")
    assert not [found.name for found in recording if found.protect], "nothing is protected"
    assert not [found.name for found in recording if found.retain_on_delete], "and nothing stays"


def test_production_has_no_way_in_from_the_internet() -> None:
    access = stack("azure-prod").one(":ManagedCluster")
    assert value(access, "apiServerAccessProfile", "enablePrivateCluster") is True, "no public address"
    assert value(access, "apiServerAccessProfile", "authorizedIPRanges") is None, "and nobody let in to one"


def test_development_is_reached_from_named_addresses_and_by_its_own_nodes_only() -> None:
    cluster = stack("azure-dev").one(":ManagedCluster")
    assert value(cluster, "apiServerAccessProfile", "authorizedIPRanges") == [
        "203.0.113.0/24",
        "198.51.100.7/32",
    ], "a node that is not let in never joins"


def test_production_outlives_a_zone() -> None:
    recording = stack("azure-prod")
    (system,) = objects(recording.one(":ManagedCluster"), "agentPoolProfiles")
    assert value(system, "availabilityZones") == ["1", "2", "3"], "with an operators' node in each"
    assert value(system, "count") == 3, "one of them may go"
    assert text(recording.one(":StorageAccount"), "sku", "name") == "Standard_ZRS", "and a copy in each"


def test_disks_of_production_are_encrypted_with_a_key_of_the_users_own() -> None:
    assert text(stack("azure-prod").one(":ManagedCluster"), "diskEncryptionSetID") == (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/holdfast-keys/providers/Microsoft.Compute/"
        "diskEncryptionSets/holdfast"
    ), "as it is written"


def test_production_is_upgraded_in_its_hours_and_not_on_its_holidays() -> None:
    windows = stack("azure-prod").of(":MaintenanceConfiguration")
    assert {text(found, "configName") for found in windows} == {
        "default",
        "aksManagedAutoUpgradeSchedule",
        "aksManagedNodeOSUpgradeSchedule",
    }, "AKS's own releases, Kubernetes, and the nodes' operating system"
    for found in windows:
        window = value(found, "maintenanceWindow")
        assert isinstance(window, dict), "each has one"
        assert text(window, "schedule", "weekly", "dayOfWeek") == "Saturday", "when little trains"
        assert value(window, "startDate") == "2026-01-03", (
            "a written day: one that moves is a change in every plan"
        )
        assert value(window, "notAllowedDates") == [{"start": "2026-12-20", "end": "2027-01-06"}], (
            "nobody is there to look"
        )


def test_only_production_holds_a_price_cap() -> None:
    caps = {
        text(found, "agentPoolName"): value(found, "spotMaxPrice")
        for found in stack("azure-prod").of(":AgentPool")
    }
    assert caps == {"cpu": None, "cpuspot": 1.2, "a100spot": -1, "h100spot": -1, "a100": None}, (
        "where it is written, else up to the on-demand price"
    )
