"""The selection of resources after which a run is killed, and the comparison of cloud objects."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.rehearsal.clouds.state import CloudObject
from pulumi_holdfast.rehearsal.engine.checkpoint import RecordedResource
from tests.soak.crash.cloud_objects import comparable
from tests.soak.crash.selection import drawn, every, pivotal, sample
from tests.support.builders.engine_records import urn


def test_only_resources_of_a_provider_are_selected() -> None:
    made = RecordedResource(urn=urn("vpc"), id="vpc-1")
    component = RecordedResource(urn=urn("network", "holdfast:index:Network"), id="")
    provider = RecordedResource(urn=urn("default", "pulumi:providers:aws"), id="0000")
    only_read = RecordedResource(urn=urn("role"), id="role", external=True)
    assert every([component, provider, made, only_read]) == (made.urn,)


@given(st.lists(st.text(min_size=1), unique=True), st.integers(1, 20), st.integers())
def test_a_sample_is_the_same_for_the_same_seed_and_keeps_the_order(
    urns: list[str], size: int, seed: int
) -> None:
    chosen = sample(urns, size, seed)
    assert chosen == sample(urns, size, seed)
    assert list(chosen) == [one for one in urns if one in chosen]
    assert len(chosen) == min(size, len(urns))


ROLE = urn("spot", "aws:iam/serviceLinkedRole:ServiceLinkedRole")
CLUSTER = urn("cluster", "aws:eks/cluster:Cluster")
KARPENTER = urn("karpenter-operator", "holdfast:index:EksKarpenter$kubernetes:helm.sh/v3:Release")
KARPENTER_CRDS = urn("karpenter-operator-crds", "holdfast:index:EksKarpenter$kubernetes:helm.sh/v3:Release")
POOLS = tuple(urn(f"pool-{name}", "kubernetes:karpenter.sh/v1:NodePool") for name in "abc")
OTHERS = tuple(urn(f"subnet-{at}", "aws:ec2/subnet:Subnet") for at in range(20))
STACK = (ROLE, *OTHERS, CLUSTER, KARPENTER_CRDS, KARPENTER, *POOLS)


def test_pivotal_resources_are_always_selected() -> None:
    assert pivotal(STACK) == (ROLE, CLUSTER, KARPENTER, *POOLS)


def test_the_pivotal_resources_of_gcp_are_cluster_node_pools_and_checkpoint_grants() -> None:
    cluster = urn("cluster", "gcp:container/cluster:Cluster")
    pools = tuple(urn(name, "gcp:container/nodePool:NodePool") for name in ("system", "cpu-spot"))
    folder = urn("folder", "gcp:storage/managedFolder:ManagedFolder")
    grant = urn("trainers", "gcp:storage/managedFolderIamMember:ManagedFolderIamMember")
    jobset = urn("jobset", "holdfast:index:Operators$kubernetes:helm.sh/v3:Release")
    assert pivotal((cluster, *pools, jobset, folder, grant)) == (cluster, *pools, grant)


def test_a_sample_is_added_to_the_pivotal_resources() -> None:
    chosen = drawn(STACK, 3, 7)
    assert set(pivotal(STACK)) < set(chosen)
    assert len(chosen) == len(pivotal(STACK)) + 3
    assert list(chosen) == [one for one in STACK if one in chosen]


def test_another_seed_selects_other_resources() -> None:
    urns = [str(number) for number in range(100)]
    assert len({sample(urns, 3, seed) for seed in range(20)}) > 1


_BUCKET = "aws:s3/bucket:Bucket"


def _bucket(name: str = "ckpt-1a2b3c4", **inputs: Any) -> CloudObject:
    return CloudObject(
        type=_BUCKET,
        id=name,
        urn=urn("ckpt", _BUCKET),
        digest="d",
        inputs={"bucket": name, **inputs},
        computed={"arn": f"arn:aws:s3:::{name}"},
    )


def _queue(bucket: str) -> CloudObject:
    return CloudObject(
        type="aws:sqs/queue:Queue", id="q", urn=urn("q"), digest="d", inputs={"policy": f"for {bucket}/*"}
    )


def test_objects_differ_in_content_but_not_in_random_names_or_order() -> None:
    one = comparable([_bucket("ckpt-1a2b3c4"), _queue("ckpt-1a2b3c4")])
    other = comparable([_bucket("ckpt-ffffff0"), _queue("ckpt-ffffff0")])
    assert one == other
    assert comparable([_bucket(tags={"a": "b"})]) != comparable([_bucket(tags={"a": "c"})])
    assert comparable([_bucket("mine")]) != comparable([_bucket("yours")])
    twice = comparable([_bucket("ckpt-1a2b3c4"), _bucket("ckpt-ffffff0")])
    assert len(twice) == 2


def _assignment(name: str, *, principal: str = "trainer") -> CloudObject:
    kind = "azure-native:authorization:RoleAssignment"
    return CloudObject(
        type=kind,
        id=f"/subscriptions/s/providers/Microsoft.Authorization/roleAssignments/{name}",
        urn=urn("access", kind),
        digest="d",
        inputs={"roleAssignmentName": name, "principalId": principal},
    )


def test_a_guid_in_the_id_of_its_object_is_equal() -> None:
    names = ("8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d11", "8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d22")
    one, other = (comparable([_assignment(name)]) for name in names)
    assert one == other


def test_a_guid_that_an_object_only_references_differs() -> None:
    name = "8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d11"
    one = comparable([_assignment(name, principal="8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d33")])
    other = comparable([_assignment(name, principal="8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d44")])
    assert one != other


def _held(name: str, within: str) -> CloudObject:
    kind = "azure-native:storage:BlobContainer"
    return CloudObject(
        type=kind, id=f"{within}/{name}", urn=urn(name, kind), digest="d", inputs={"accountName": within}
    )


def test_the_order_of_creation_is_ignored() -> None:
    account, parts = "ckpt1a2b3c4d", ("ckpt-a", "ckpt-b")
    one = comparable([_bucket(account), *(_held(part, account) for part in parts)])
    other = comparable([_bucket(account), *(_held(part, account) for part in reversed(parts))])
    assert one == other
