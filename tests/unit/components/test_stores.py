"""What the checkpoint stores of all clouds have in common: addresses, protection and generated names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest

from pulumi_holdfast.aws import checkpoints as s3
from pulumi_holdfast.azure import checkpoints as blob
from pulumi_holdfast.gcp import checkpoints as gcs
from pulumi_holdfast.kubernetes.contracts import CheckpointStore
from tests.support.fakes.pulumi_engine import Recording, record

NAMESPACES: Final = ("vision", "tabular")


@dataclass(frozen=True)
class Store:
    make: Callable[[bool], CheckpointStore]
    uri: str
    uri_on_preview: bool
    resources: int
    names: dict[str, set[str]]


SUBNET: Final = (
    "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/ml/providers/Microsoft.Network/virtualNetworks/ml"
    "/subnets/nodes"
)


def _s3(protected: bool) -> CheckpointStore:
    args = s3.CheckpointBucketArgs(namespaces=NAMESPACES, retain_days=30, kms=True, protected=protected)
    return s3.CheckpointBucket("checkpoints", args)


def _gcs(protected: bool) -> CheckpointStore:
    args = gcs.CheckpointBucketArgs(
        project="ml-dev", location="europe-west4", namespaces=NAMESPACES, retain_days=30, protected=protected
    )
    return gcs.CheckpointBucket("checkpoints", args)


def _blob(protected: bool) -> CheckpointStore:
    args = blob.CheckpointBucketArgs(
        location="westeurope", subnet_id=SUBNET, namespaces=NAMESPACES, retain_days=30, protected=protected
    )
    return blob.CheckpointBucket("checkpoints", args)


STORES: Final = {
    "s3": Store(
        _s3, "s3://checkpoints-{0}-bucket-0a1b2c3/{0}", True, 13, {":Bucket": {"bucket", "bucketPrefix"}}
    ),
    "gcs": Store(_gcs, "gs://checkpoints-bucket-0a1b2c3/{}", True, 1, {":Bucket": {"name"}}),
    "blob": Store(
        _blob,
        "abfss://{}@checkpoints0a1b2c3d.blob.core.windows.net",
        False,
        6,
        {":StorageAccount": {"accountName"}, ":ResourceGroup": {"resourceGroupName"}},
    ),
}
stores = pytest.mark.parametrize("store", STORES.values(), ids=STORES)


def recorded(store: Store, *, protected: bool = False) -> Recording:
    return record(lambda: store.make(protected))


@stores
@pytest.mark.parametrize("preview", [False, True])
def test_each_namespace_has_its_own_address(store: Store, preview: bool) -> None:
    addresses: list[str] = []

    def build() -> None:
        made = store.make(False)
        for namespace in NAMESPACES:
            made.uri(namespace).apply(addresses.append)

    record(build, preview=preview)
    known = NAMESPACES if store.uri_on_preview or not preview else ()
    assert sorted(addresses) == sorted(store.uri.format(namespace) for namespace in known)


@stores
def test_an_unknown_namespace_is_rejected(store: Store) -> None:
    with pytest.raises(ValueError, match=r"'audio' is not one of the (bucket|store)'s namespaces"):
        record(lambda: store.make(False).uri("audio"))


@stores
@pytest.mark.parametrize("protected", [True, False])
def test_only_a_protected_store_is_retained_with_its_settings(store: Store, protected: bool) -> None:
    found = [resource for resource in recorded(store, protected=protected) if resource.custom]
    assert len(found) == store.resources
    for resource in found:
        assert resource.protect is protected, f"{resource.name}: a plain `destroy` deletes others"
        assert resource.retain_on_delete is protected, (
            f"{resource.name}: without its settings a retained store would be open or unreadable"
        )
        if resource.type.endswith(":Bucket"):
            assert resource.inputs["forceDestroy"] is not protected


@stores
@pytest.mark.parametrize("protected", [True, False])
def test_global_names_are_generated(store: Store, protected: bool) -> None:
    recording = recorded(store, protected=protected)
    for kind, names in store.names.items():
        for made in recording.of(kind):
            assert not names & made.inputs.keys(), f"a fixed name of a {kind} may be taken"
