"""After which resources a run is killed."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.simulator.pulumi.checkpoint import Recorded
from tests.soak.crash.selection import drawn, every, pivotal, sample
from tests.support.rehearsals import urn


def test_only_what_a_provider_made_is_worth_a_kill() -> None:
    made = Recorded(urn=urn("vpc"), id="vpc-1")
    component = Recorded(urn=urn("network", "holdfast:index:Network"), id="")
    provider = Recorded(urn=urn("default", "pulumi:providers:aws"), id="0000")
    only_read = Recorded(urn=urn("role"), id="role", external=True)
    assert every([component, provider, made, only_read]) == (made.urn,), (
        "nothing outside is made for the others"
    )


@given(st.lists(st.text(min_size=1), unique=True), st.integers(1, 20), st.integers())
def test_a_sample_is_the_same_for_the_same_seed_and_keeps_the_order(
    urns: list[str], size: int, seed: int
) -> None:
    chosen = sample(urns, size, seed)
    assert chosen == sample(urns, size, seed), "a failure could not be repeated"
    assert list(chosen) == [one for one in urns if one in chosen], (
        "the order tells what existed before the kill"
    )
    assert len(chosen) == min(size, len(urns)), "not as many as were asked for"


ROLE = urn("spot", "aws:iam/serviceLinkedRole:ServiceLinkedRole")
CLUSTER = urn("cluster", "aws:eks/cluster:Cluster")
KARPENTER = urn("karpenter-operator", "holdfast:index:EksKarpenter$kubernetes:helm.sh/v3:Release")
KARPENTER_CRDS = urn("karpenter-operator-crds", "holdfast:index:EksKarpenter$kubernetes:helm.sh/v3:Release")
POOLS = tuple(urn(f"pool-{name}", "kubernetes:karpenter.sh/v1:NodePool") for name in "abc")
OTHERS = tuple(urn(f"subnet-{at}", "aws:ec2/subnet:Subnet") for at in range(20))
STACK = (ROLE, *OTHERS, CLUSTER, KARPENTER_CRDS, KARPENTER, *POOLS)


def test_what_a_stack_turns_on_is_always_taken() -> None:
    assert pivotal(STACK) == (ROLE, CLUSTER, KARPENTER, *POOLS), "role, cluster, Karpenter and every pool"


def test_on_google_cloud_it_turns_on_the_cluster_its_node_pools_and_the_grants_of_checkpoints() -> None:
    cluster = urn("cluster", "gcp:container/cluster:Cluster")
    pools = tuple(urn(name, "gcp:container/nodePool:NodePool") for name in ("system", "cpu-spot"))
    folder = urn("folder", "gcp:storage/managedFolder:ManagedFolder")
    grant = urn("trainers", "gcp:storage/managedFolderIamMember:ManagedFolderIamMember")
    jobset = urn("jobset", "holdfast:index:Operators$kubernetes:helm.sh/v3:Release")
    assert pivotal((cluster, *pools, jobset, folder, grant)) == (cluster, *pools, grant), (
        "a folder without its grant lets nobody in"
    )


def test_a_sample_comes_on_top_of_what_is_always_taken() -> None:
    chosen = drawn(STACK, 3, 7)
    assert set(pivotal(STACK)) < set(chosen), "something it turns on was left to chance"
    assert len(chosen) == len(pivotal(STACK)) + 3, "three others were drawn"
    assert list(chosen) == [one for one in STACK if one in chosen], (
        "the order tells what existed before the kill"
    )


def test_another_seed_chooses_others() -> None:
    urns = [str(number) for number in range(100)]
    assert len({sample(urns, 3, seed) for seed in range(20)}) > 1, "the seed does nothing"
