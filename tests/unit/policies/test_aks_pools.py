"""AKS's agent pools are pools to end a ladder on, like Karpenter's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.policies.aks_pools import aks_pools
from holdfast.policies.known_values import UNKNOWN
from holdfast.policies.ladder_end import ladder_end_findings
from holdfast.scheduling.labels import POOL
from tests.support.aks_stack_resources import AGENT_POOL_TYPE, aks_cluster, aks_pool, aks_stack
from tests.support.aks_stack_resources import aks_pools as valid_pools
from tests.support.stack_resources import capacity_requirement, node_pool, resource

if TYPE_CHECKING:
    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

SPOT = aks_pool("a100-spot", scaleSetPriority="Spot")
INLINE: Value = {"name": "a100", "mode": "User", "nodeLabels": {POOL: "a100"}}


@pytest.mark.parametrize(
    ("what", "pools"),
    [
        ("a pool that says nothing of it", valid_pools()),
        ("a pool that says it is regular", [SPOT, aks_pool("a100", scaleSetPriority="Regular")]),
        ("a pool of the cluster itself", [SPOT, aks_cluster(agentPoolProfiles=[INLINE])]),
        (
            "a pool of node auto-provisioning beside one of AKS",
            [SPOT, node_pool("a100", capacity_requirement("on-demand"))],
        ),
        ("a pool of which something else is not known", [SPOT, aks_pool("a100", vnetSubnetID=UNKNOWN)]),
        (
            "a pool of an older version of the API",
            [
                SPOT,
                resource("azure-native:containerservice/v20230401:AgentPool", "old", aks_pool("a100").props),
            ],
        ),
    ],
)
def test_a_ladder_that_ends_on_an_on_demand_pool_of_aks_passes(what: str, pools: list[StackResource]) -> None:
    assert ladder_end_findings(aks_stack(*pools)) == (), f"{what}: there is somewhere to fall back to"


@pytest.mark.parametrize(
    ("what", "pool", "parts"),
    [
        ("spot", aks_pool("a100", scaleSetPriority="Spot"), ["NodePool 'a100' makes spot nodes"]),
        ("spot in small letters", aks_pool("a100", scaleSetPriority="spot"), ["makes spot nodes"]),
        (
            "spot, of the cluster itself",
            aks_cluster(
                agentPoolProfiles=[{"name": "a100", "scaleSetPriority": "Spot", "nodeLabels": {POOL: "a100"}}]
            ),
            ["NodePool 'a100' makes spot nodes"],
        ),
        ("unlabelled", aks_pool("a100", labels={}), [f"lack the label {POOL}: a100", "`nodeLabels`"]),
        (
            "of another name",
            aks_pool("other"),
            ["pool 'a100', which no NodePool of this program makes", "'other'"],
        ),
    ],
)
def test_a_ladder_that_ends_on_no_on_demand_pool_is_stopped(
    what: str, pool: StackResource, parts: list[str]
) -> None:
    (finding,) = ladder_end_findings(aks_stack(SPOT, pool))
    assert finding.proven, f"{what}: nothing about it is unknown"
    for part in parts:
        assert part in finding.message, f"{what}: the message must say {part}: {finding.message}"


@pytest.mark.parametrize(
    ("what", "pool"),
    [
        ("whether it is spot", aks_pool("a100", scaleSetPriority=UNKNOWN)),
        ("its labels", aks_pool("a100", labels=UNKNOWN)),
    ],
)
def test_what_only_the_update_will_know_stops_nothing(what: str, pool: StackResource) -> None:
    (finding,) = ladder_end_findings(aks_stack(SPOT, pool))
    assert not finding.proven, f"{what} is known only then: {finding.message}"


def test_pools_of_a_cluster_that_are_not_known_yet_are_none() -> None:
    assert aks_pools([aks_cluster(agentPoolProfiles=UNKNOWN)]) == (), "their number is not known either"


def test_a_pool_is_known_by_the_name_that_aks_has_for_it() -> None:
    (named,) = aks_pools([SPOT])
    assert (named.name, named.node_pool) == ("a100-spot", "a100spot"), "messages say what the portal shows"
    (unnamed,) = aks_pools([resource(AGENT_POOL_TYPE, "pool-a100", {"nodeLabels": {POOL: "a100"}})])
    assert unnamed.node_pool == "pool-a100", "or what the program calls it"
