"""Pools and ladders of two clusters in one stack are judged apart."""

from dataclasses import replace

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.resources import StackResource, Value
from rule import MADE_HERE, PACK_DEFAULTS
from rules.ladder_end import find_ladder_ends
from tests.support.builders.stack_resources import (
    A100_SPOT,
    aks_cluster,
    aks_pool,
    capacity_requirement,
    gke_pool,
    ladder,
    namespace,
    node_pool,
    resource,
)

PROVIDER = "pulumi:providers:kubernetes"


def provider(name: str, *clusters: StackResource, **props: Value) -> StackResource:
    """A Kubernetes provider whose kubeconfig is made from the outputs of these clusters."""
    refers_to = {"kubeconfig": tuple(each.urn for each in clusters)} if clusters else {}
    kubeconfig: dict[str, Value] = {"kubeconfig": UNKNOWN} if clusters else {}
    return replace(resource(PROVIDER, name, {**kubeconfig, **props}), refers_to=refers_to)


def eks(name: str) -> StackResource:
    """A cluster of EKS."""
    return resource("aws:eks/cluster:Cluster", name, {"name": name})


def by(each: StackResource, of: StackResource) -> StackResource:
    """The resource as this provider makes it."""
    return replace(each, provider=of.urn)


EAST, WEST = eks("east"), eks("west")
TO_EAST, TO_WEST = provider("to-east", EAST), provider("to-west", WEST)
SPOT = node_pool("a100-spot", capacity_requirement("spot"))
ON_DEMAND = node_pool("a100", capacity_requirement("on-demand"))


def test_on_demand_pool_of_another_cluster_is_no_end_of_a_ladder() -> None:
    stack = [EAST, WEST, TO_EAST, TO_WEST, by(namespace(), TO_EAST), by(ladder(), TO_EAST), by(SPOT, TO_EAST)]
    (finding,) = find_ladder_ends([*stack, by(ON_DEMAND, TO_WEST)], {**PACK_DEFAULTS, MADE_HERE: ["pools"]})
    assert finding.proven
    assert "no NodePool of this program makes" in finding.message
    assert find_ladder_ends([*stack, by(ON_DEMAND, TO_EAST)]) == ()


def test_namespaces_of_one_name_in_two_clusters_have_their_own_ladders() -> None:
    stack = [EAST, WEST, TO_EAST, TO_WEST]
    for to, tiers in ((TO_EAST, (A100_SPOT, {"pool": "a100"})), (TO_WEST, (A100_SPOT,))):
        own = [namespace(), ladder(tiers), SPOT, ON_DEMAND]
        stack += [replace(by(each, to), urn=f"{each.urn}-{to.logical_name}") for each in own]
    (finding,) = find_ladder_ends(stack)
    assert finding.urn.endswith("to-west")


CASES: list[tuple[str, list[StackResource], StackResource, StackResource, object]] = [
    ("one provider", [], by(SPOT, TO_EAST), by(ON_DEMAND, TO_EAST), True),
    ("two providers of one cluster", [EAST, WEST, TO_EAST, provider("again", EAST)], by(SPOT, TO_EAST), by(ON_DEMAND, provider("again", EAST)), True),
    ("through another resource", [EAST, WEST, replace(resource("command:local:Command", "config", {}), refers_to={"stdin": (EAST.urn,)}), TO_WEST, provider("deep", resource("command:local:Command", "config", {}))], by(SPOT, provider("deep")), by(ON_DEMAND, TO_WEST), False),
    ("two contexts", [provider("a", context="east"), provider("b", context="west")], by(SPOT, provider("a")), by(ON_DEMAND, provider("b")), False),
    ("two kubeconfigs that are not known", [provider("a", kubeconfig=UNKNOWN), provider("b", kubeconfig=UNKNOWN)], by(SPOT, provider("a")), by(ON_DEMAND, provider("b")), UNKNOWN),
    ("two clusters, and a provider that shows neither", [EAST, WEST, TO_EAST, provider("a", context="x")], by(SPOT, TO_EAST), by(ON_DEMAND, provider("a")), UNKNOWN),
    ("one cluster, and a provider that shows none", [EAST, TO_EAST, provider("a", context="x")], by(SPOT, TO_EAST), by(ON_DEMAND, provider("a")), True),
    ("agent pools of two clusters", [], aks_pool("a", resourceName="east"), aks_pool("b", resourceName="west"), False),
    ("node pools of one cluster", [], replace(gke_pool("a"), refers_to={"cluster": ()}, props={"cluster": "x"}), replace(gke_pool("b"), props={"cluster": "x"}), True),
    ("a cluster's own pools", [aks_cluster(resourceName="east")], aks_cluster(), aks_pool("b", resourceName="east"), True),
]  # fmt: skip


@pytest.mark.parametrize(("case", "stack", "left", "right", "same"), CASES, ids=[case for case, *_ in CASES])
def test_cluster_of_a_resource_is_that_of_its_provider_or_the_one_it_names(
    case: str, stack: list[StackResource], left: StackResource, right: StackResource, same: object
) -> None:
    assert is_same_cluster(left, right, [*stack, left, right]) is same, case
    assert is_same_cluster(right, left, [*stack, left, right]) is same, f"{case}: in either order"
