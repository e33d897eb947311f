"""An AKS cluster scales in one way, and so do its pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.policies.aks_scaling import aks_scaling_findings
from holdfast.policies.known_values import UNKNOWN
from tests.support.aks_stack_resources import aks_cluster, aks_node_pool, aks_pool, aks_pools
from tests.support.stack_resources import compliant

if TYPE_CHECKING:
    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

AUTO: Value = {"mode": "Auto", "defaultNodePools": "None"}
FIXED_SIZE = aks_pool("build", enableAutoScaling=False)


@pytest.mark.parametrize(
    ("what", "resources"),
    [
        ("no AKS at all", compliant()),
        ("NodePools under auto-provisioning", [aks_cluster(AUTO), aks_node_pool()]),
        ("a pool of a fixed size beside them", [aks_cluster(AUTO), aks_node_pool(), FIXED_SIZE]),
        ("scale sets without it", [aks_cluster(), *aks_pools()]),
        ("scale sets where it is turned off", [aks_cluster({"mode": "Manual"}), *aks_pools()]),
        ("NodePools for a cluster of another program", [aks_node_pool()]),
        ("a cluster of which this is not known yet", [aks_cluster(UNKNOWN), *aks_pools(), aks_node_pool()]),
        (
            "default pools that are not known yet",
            [aks_cluster({"mode": "Auto", "defaultNodePools": UNKNOWN})],
        ),
        ("two clusters, one of each kind", [aks_cluster(AUTO), aks_cluster(), *aks_pools(), aks_node_pool()]),
        ("profiles that are not known yet", [aks_cluster(AUTO, agentPoolProfiles=UNKNOWN)]),
    ],
)
def test_one_way_of_scaling_passes(what: str, resources: list[StackResource]) -> None:
    assert aks_scaling_findings(resources) == (), f"{what}: nothing contradicts it"


def test_pools_that_scale_by_themselves_are_refused_beside_auto_provisioning() -> None:
    spot, on_demand = aks_pools()
    found = aks_scaling_findings([aks_cluster(AUTO), spot, on_demand])
    assert [finding.urn for finding in found] == [spot.urn, on_demand.urn], "each is refused by AKS"
    assert "which AKS refuses in cluster 'cluster'" in found[0].message, found[0].message


def test_so_is_such_a_pool_of_the_cluster_itself() -> None:
    cluster = aks_cluster(AUTO, agentPoolProfiles=[{"name": "system", "enableAutoScaling": True}])
    (finding,) = aks_scaling_findings([cluster])
    assert "node pool 'system' scales by itself" in finding.message, finding.message
    assert finding.urn == cluster.urn, "it is where the pool is written"


@pytest.mark.parametrize("defaults", ["Auto", None])
def test_node_pools_of_aks_own_are_not_wanted(defaults: Value) -> None:
    (finding,) = aks_scaling_findings([aks_cluster({"mode": "Auto", "defaultNodePools": defaults})])
    assert "`nodeProvisioningProfile.defaultNodePools` to `None`" in finding.message, finding.message


@pytest.mark.parametrize("provisioning", [None, {"mode": "Manual"}])
def test_node_pools_that_nobody_makes_machines_for_are_refused(provisioning: Value) -> None:
    node_pool = aks_node_pool()
    (finding,) = aks_scaling_findings([aks_cluster(provisioning), node_pool])
    assert finding.urn == node_pool.urn, "its jobs would wait for ever"
    assert "drains every node" in finding.message, "so is what turning auto-provisioning off does"
