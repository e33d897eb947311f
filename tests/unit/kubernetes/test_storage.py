"""Volumes of data in a namespace: the volume is reserved for one claim, and both say the same."""

from pulumi_holdfast.kubernetes.storage import (
    MountedVolume,
    NamespaceClaim,
    NamespaceVolume,
    NamespaceVolumeArgs,
    volume_name,
)
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import mapping, text, value

BUCKET = MountedVolume(
    name="data", driver="s3.csi.aws.com", handle="a", options=("read-only",), read_only=True
)
LUSTRE = MountedVolume(
    name="scratch",
    driver="fsx.csi.aws.com",
    handle="fs-1",
    attributes={"mountname": "m"},
    size_gib=1200,
    zone="us-west-2a",
)


def recorded(volume: MountedVolume) -> Recording:
    args = NamespaceVolumeArgs(namespace="vision", volume=volume)

    def make() -> None:
        NamespaceVolume("volume", args)
        NamespaceClaim("claim", args)

    return record(make)


def test_a_volume_is_for_one_claim_of_one_namespace_and_is_never_deleted_with_it() -> None:
    for each in (BUCKET, LUSTRE):
        recording = recorded(each)
        volume, claim = recording.one(":PersistentVolume"), recording.one(":PersistentVolumeClaim")
        assert value(volume, "spec", "claimRef") == {"namespace": "vision", "name": each.name}
        assert claim.inputs["metadata"] == {"name": each.name, "namespace": "vision"}
        assert text(claim, "spec", "volumeName") == text(volume, "metadata", "name")
        assert text(volume, "spec", "persistentVolumeReclaimPolicy") == "Retain"
        for made in (volume, claim):
            assert value(made, "spec", "storageClassName") == "", (
                "the default class would make another volume"
            )
        assert value(claim, "spec", "accessModes") == value(volume, "spec", "accessModes")
        assert value(claim, "spec", "resources", "requests") == {"storage": "1Ki"}, (
            "a quota counts no file system"
        )


def test_a_bucket_is_mounted_to_read_in_any_zone() -> None:
    spec = mapping(recorded(BUCKET).one(":PersistentVolume"), "spec")
    assert spec["accessModes"] == ["ReadOnlyMany"]
    assert spec["csi"] == {"driver": "s3.csi.aws.com", "volumeHandle": "a", "readOnly": True}
    assert spec["mountOptions"] == ["read-only"]
    assert "nodeAffinity" not in spec


def test_a_parallel_file_system_is_written_too_and_keeps_its_pods_in_its_zone() -> None:
    spec = mapping(recorded(LUSTRE).one(":PersistentVolume"), "spec")
    assert spec["accessModes"] == ["ReadWriteMany"]
    assert spec["csi"] == {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": "fs-1",
        "volumeAttributes": {"mountname": "m"},
    }
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2a"]}
    assert spec["nodeAffinity"] == {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}


def test_no_two_namespaces_have_a_volume_of_one_name() -> None:
    assert volume_name("a-b", "c") != volume_name("a", "b-c")
