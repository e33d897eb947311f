"""Checkpoints in a local directory."""

import pytest

from pulumi_holdfast.kubernetes.contracts import CheckpointStore
from pulumi_holdfast.local.checkpoints import (
    CheckpointBucket,
    CheckpointBucketArgs,
    CheckpointClaim,
    CheckpointClaimArgs,
)
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import mapping, text, value

ARGS = CheckpointBucketArgs(directory="/data/check points", namespaces=["vision", "tabular"])


@pytest.mark.parametrize("preview", [False, True])
def test_each_namespace_has_its_own_volume_which_outlives_the_stack(preview: bool) -> None:
    addresses: list[str] = []

    def build() -> None:
        store: CheckpointStore = CheckpointBucket("checkpoints", ARGS)
        store.uri("vision").apply(addresses.append)

    volumes = record(build, preview=preview).of(":PersistentVolume")
    assert {text(volume, "spec", "hostPath", "path") for volume in volumes} == {
        "/data/check points/vision",
        "/data/check points/tabular",
    }
    assert addresses == ["file:///data/check%20points/vision"]
    for volume in volumes:
        policy = text(volume, "spec", "persistentVolumeReclaimPolicy")
        assert policy == "Retain", "destroying a stack must not delete checkpoints"


def test_claim_and_volume_are_bound_to_each_other_for_all_pods_of_a_job() -> None:
    def build() -> None:
        CheckpointBucket("checkpoints", ARGS)
        CheckpointClaim("checkpoints-of-vision", CheckpointClaimArgs(namespace="vision"))

    recording = record(build)
    claim = recording.one(":PersistentVolumeClaim")
    volume = recording.one(":PersistentVolume", "checkpoints-vision")
    assert text(claim, "spec", "volumeName") == text(volume, "metadata", "name")
    reserved = mapping(volume, "spec", "claimRef")
    assert reserved == {"namespace": "vision", "name": text(claim, "metadata", "name")}
    for bound in (claim, volume):
        assert value(bound, "spec", "storageClassName") == "", "an absent class means the default class"
    assert value(claim, "spec", "accessModes") == ["ReadWriteMany"]
