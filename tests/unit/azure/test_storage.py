"""Volumes of data on Azure: `stacks/Pulumi.azure-data.yaml`, which has every kind."""

import pytest

from pulumi_holdfast.azure.role_assignments import STORAGE_BLOB_DATA_READER
from tests.support.builders.azure_stacks import composed, stack
from tests.support.builders.configurations import Document, nap_platform
from tests.support.fakes.cloud_outputs import CLIENT, FILE_SYSTEM
from tests.support.fakes.pulumi_engine import Recorded
from tests.support.inputs import mapping, text, value

RECORDING = "azure-data"


def spec(namespace: str, volume: str) -> Recorded:
    return stack(RECORDING).one(":PersistentVolume", f"main-volume-{volume}-of-{namespace}-volume")


def test_the_jobs_of_its_namespaces_read_a_container_with_their_own_identity() -> None:
    recording = stack(RECORDING)
    grants = [each for each in recording.of(":RoleAssignment") if "access-to-datasets" in each.name]
    assert len(grants) == 2
    for each in grants:
        assert text(each, "roleDefinitionId").endswith(STORAGE_BLOB_DATA_READER)
        assert text(each, "scope") == "main-volume-datasets-datasets-id"
    assert mapping(spec("speech", "datasets"), "spec", "csi", "volumeAttributes") == {
        "protocol": "fuse2",
        "resourceGroup": "main-volume-datasets-group0a1b2c3d",
        "storageAccount": "mainvolumeda230c0a1b2c3d",
        "containerName": "datasets",
        "clientID": CLIENT,
        "mountWithWorkloadIdentityToken": "true",
    }
    assert "-o ro" in str(value(spec("speech", "datasets"), "spec", "mountOptions"))


def test_a_share_admits_the_nodes_alone_and_no_client_that_does_not_encrypt() -> None:
    recording = stack(RECORDING)
    account = recording.one(":StorageAccount", "mainvolumehome")
    assert (text(account, "kind"), value(account, "sku")) == ("FileStorage", {"name": "Premium_ZRS"})
    assert value(account, "enableHttpsTrafficOnly") is True
    assert value(account, "allowSharedKeyAccess") is False
    rules = mapping(account, "networkRuleSet")
    assert (rules["defaultAction"], rules["bypass"]) == ("Deny", "None")
    assert "main-network-nodes-id" in str(rules["virtualNetworkRules"])
    share = recording.one(":FileShare")
    assert (text(share, "enabledProtocols"), value(share, "shareQuota")) == ("NFS", 1024)
    attributes = mapping(spec("vision", "home"), "spec", "csi", "volumeAttributes")
    assert (attributes["protocol"], attributes["encryptInTransit"]) == ("nfs", "true")


def test_lustre_is_in_a_subnet_of_its_own_of_the_stacks_network() -> None:
    recording = stack(RECORDING)
    subnet = recording.one(":Subnet", "main-volume-scratch-subnet")
    assert (text(subnet, "virtualNetworkName"), text(subnet, "addressPrefix")) == (
        "holdfast-azure-data",
        "10.57.0.0/26",
    )
    assert mapping(recording.one(":VirtualNetwork"), "addressSpace") == {
        "addressPrefixes": ["10.56.0.0/16", "10.57.0.0/26"]
    }
    system = recording.one(":AmlFilesystem")
    assert text(system, "filesystemSubnet") == "main-volume-scratch-subnet-id"
    assert (value(system, "storageCapacityTiB"), value(system, "zones")) == (16, ["1"])
    scratch = spec("vision", "scratch")
    assert mapping(scratch, "spec", "csi", "volumeAttributes") == {
        "mgs-ip-address": FILE_SYSTEM,
        "fs-name": "lustrefs",
    }
    zones = value(scratch, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
    assert "'eastus2-1'" in str(zones), "as AKS labels nodes"


def test_the_cluster_has_the_drivers_that_its_volumes_need_and_no_others() -> None:
    recording = stack(RECORDING)
    assert mapping(recording.one(":ManagedCluster"), "storageProfile") == {"blobCSIDriver": {"enabled": True}}
    extension = recording.one(":Extension")
    assert text(extension, "extensionType") == "microsoft.azuremanagedlustre"
    assert mapping(extension, "configurationSettings")["node.tolerations[0].operator"] == "Exists"
    other = stack("azure-prod")
    assert "storageProfile" not in other.one(":ManagedCluster").inputs
    assert not other.of(":Extension")


@pytest.mark.parametrize(("deleted", "kept"), [(False, True), (True, False)])
def test_data_outlives_the_stack_unless_the_volume_says_otherwise(deleted: bool, kept: bool) -> None:
    def change(document: Document) -> None:
        document["storage"] = [
            {
                "name": "home",
                "kind": "shared",
                "namespaces": ["vision"],
                "sizeGiB": 100,
                "deleteWithStack": deleted,
            }
        ]

    recording = composed(nap_platform(change))
    for kind in (":FileShare", ":FileServiceProperties"):
        each = recording.one(kind)
        assert (each.protect, each.retain_on_delete) == (kept, kept)
