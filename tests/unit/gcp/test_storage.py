"""Volumes of data on Google Cloud: `stacks/Pulumi.gcp-data.yaml`, which has every kind."""

import pytest

from pulumi_holdfast.gcp.storage import file_system_name
from tests.support.builders.configurations import Document, gcp_platform
from tests.support.builders.gcp_stacks import composed, stack
from tests.support.fakes.cloud_outputs import FILE_SYSTEM
from tests.support.fakes.pulumi_engine import Recorded
from tests.support.inputs import mapping, text, value

RECORDING = "gcp-data"


def spec(namespace: str, volume: str) -> Recorded:
    return stack(RECORDING).one(":PersistentVolume", f"main-volume-{volume}-of-{namespace}-volume")


def test_the_jobs_of_its_namespaces_and_no_others_read_a_bucket() -> None:
    grants = [each for each in stack(RECORDING).of(":BucketIAMMember") if "access-to-datasets" in each.name]
    assert {text(each, "role") for each in grants} == {"roles/storage.objectViewer"}
    assert {text(each, "bucket") for each in grants} == {"main-volume-datasets-bucket-0a1b2c3"}
    subjects = {text(each, "member").partition("/subject/")[2] for each in grants}
    assert subjects == {f"ns/{each}/sa/trainer-gcp-data" for each in ("vision", "speech")}


def test_a_bucket_is_mounted_to_read_with_a_cache_that_is_smaller_than_the_disk() -> None:
    volume = spec("speech", "datasets")
    assert text(volume, "spec", "csi", "volumeHandle") == "main-volume-datasets-bucket-0a1b2c3"
    assert value(volume, "spec", "csi", "readOnly") is True
    options = value(volume, "spec", "mountOptions")
    assert "file-cache:max-size-mb:20480" in str(options)
    assert "implicit-dirs" in str(options)


def test_file_systems_are_in_the_network_of_the_nodes_and_found_by_their_addresses() -> None:
    recording = stack(RECORDING)
    shared, parallel = recording.one("filestore/instance:Instance"), recording.one("lustre/instance:Instance")
    assert "main-network-network-id" in str(value(shared, "networks"))
    assert text(parallel, "network") == "main-network-network-id"
    assert (text(shared, "tier"), text(shared, "location")) == ("REGIONAL", "us-central1")
    assert text(parallel, "location") == "us-central1-a"
    home, scratch = spec("vision", "home"), spec("vision", "scratch")
    assert text(home, "spec", "csi", "volumeHandle") == "modeInstance/us-central1/holdfast-gcp-data-home/data"
    assert mapping(home, "spec", "csi", "volumeAttributes") == {"ip": FILE_SYSTEM, "volume": "data"}
    assert (
        text(scratch, "spec", "csi", "volumeHandle")
        == "holdfast-data/us-central1-a/holdfast-gcp-data-scratch"
    )
    attributes = mapping(scratch, "spec", "csi", "volumeAttributes")
    assert attributes == {"ip": FILE_SYSTEM, "filesystem": text(parallel, "filesystem")}


def test_lustre_is_made_after_the_peering_and_may_call_its_clients() -> None:
    recording = stack(RECORDING)
    before = recording.everything_before(recording.one("lustre/instance:Instance"))
    assert "main-services" in before
    rule = recording.one(":Firewall", "main-services-lustre")
    assert value(rule, "sourceRanges") == ["10.64.0.0/20"]


def test_names_within_lustre_are_short_and_differ() -> None:
    names = {file_system_name(each) for each in ("scratch", "scratch-2", "s")}
    assert len(names) == 3
    assert all(len(each) <= 8 and each.isalnum() for each in names)


def test_the_cluster_has_the_drivers_that_its_volumes_need_and_no_others() -> None:
    found = mapping(stack(RECORDING).one("container/cluster:Cluster"), "addonsConfig")
    enabled = {"enabled": True}
    assert found == {
        "gcsFuseCsiDriverConfig": enabled,
        "gcpFilestoreCsiDriverConfig": enabled,
        "lustreCsiDriverConfig": enabled,
    }
    others = mapping(stack("gcp-prod").one("container/cluster:Cluster"), "addonsConfig")
    assert others == {"gcsFuseCsiDriverConfig": enabled}


@pytest.mark.parametrize(("deleted", "kept"), [(False, True), (True, False)])
def test_data_outlives_the_stack_unless_the_volume_says_otherwise(deleted: bool, kept: bool) -> None:
    def change(document: Document) -> None:
        document["storage"] = [
            {
                "name": "home",
                "kind": "shared",
                "namespaces": ["vision"],
                "sizeGiB": 1024,
                "deleteWithStack": deleted,
            },
            {"name": "data", "kind": "bucket", "namespaces": ["vision"], "deleteWithStack": deleted},
        ]

    recording = composed(gcp_platform(change))
    system, bucket = (
        recording.one("filestore/instance:Instance"),
        recording.one(":Bucket", "main-volume-data-bucket"),
    )
    for each in (system, bucket):
        assert (each.protect, each.retain_on_delete) == (kept, kept)
    assert value(system, "deletionProtectionEnabled") is kept
    assert value(bucket, "forceDestroy") is not kept
