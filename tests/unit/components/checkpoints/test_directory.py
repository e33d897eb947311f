"""Checkpoints in a local directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.components.checkpoints.directory import (
    CheckpointBucket,
    CheckpointBucketArgs,
    CheckpointClaim,
    CheckpointClaimArgs,
)
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import mapping, text, value

if TYPE_CHECKING:
    from holdfast.components.contracts import CheckpointStore

ARGS = CheckpointBucketArgs(directory="/data/check points", namespaces=["vision", "tabular"])


def recorded(*, preview: bool = False) -> Recording:
    def build() -> None:
        CheckpointBucket("checkpoints", ARGS)
        CheckpointClaim("checkpoints-of-vision", CheckpointClaimArgs(namespace="vision"))

    return record(build, preview=preview)


@pytest.mark.parametrize("preview", [False, True])
def test_each_namespace_has_its_own_volume(preview: bool) -> None:
    paths = {
        text(volume, "spec", "hostPath", "path")
        for volume in recorded(preview=preview).of(":PersistentVolume")
    }
    assert paths == {"/data/check points/vision", "/data/check points/tabular"}, (
        "namespaces must not see each other's checkpoints"
    )


def test_the_address_is_the_volumes_folder() -> None:
    addresses: list[str] = []

    def build() -> None:
        store: CheckpointStore = CheckpointBucket("checkpoints", ARGS)
        store.uri("vision").apply(addresses.append)

    record(build)
    assert addresses == ["file:///data/check%20points/vision"], (
        "a trainer on this machine opens the same folder"
    )


def test_checkpoints_outlive_claim_namespace_and_stack() -> None:
    for volume in recorded().of(":PersistentVolume"):
        policy = text(volume, "spec", "persistentVolumeReclaimPolicy")
        assert policy == "Retain", "destroying a stack must not delete checkpoints"


def test_claim_and_volume_are_bound_to_each_other() -> None:
    recording = recorded()
    claim = recording.one(":PersistentVolumeClaim")
    volume = recording.one(":PersistentVolume", "checkpoints-vision")
    assert text(claim, "spec", "volumeName") == text(volume, "metadata", "name"), "the claim names its volume"
    reserved = mapping(volume, "spec", "claimRef")
    assert reserved == {"namespace": "vision", "name": text(claim, "metadata", "name")}, (
        "the volume names its claim"
    )


def test_no_other_volume_is_provisioned() -> None:
    recording = recorded()
    for bound in (
        recording.one(":PersistentVolumeClaim"),
        recording.one(":PersistentVolume", "checkpoints-vision"),
    ):
        assert value(bound, "spec", "storageClassName") == "", (
            "an absent class means the cluster's default class"
        )


def test_all_pods_of_a_job_can_write_to_the_volume() -> None:
    claim = recorded().one(":PersistentVolumeClaim")
    assert value(claim, "spec", "accessModes") == ["ReadWriteMany"], (
        "the workers of a job write checkpoints together"
    )
