import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.resources import StackResource, Value
from rule import Finding
from rules import aks_scaling
from tests.support.builders.stack_resources import (
    aks_cluster,
    aks_node_pool,
    aks_pool,
    aks_pools,
    compliant,
    ladder,
    namespace,
)

AUTO: Value = {"mode": "Auto", "defaultNodePools": "None"}
FIXED_SIZE = aks_pool("build", enableAutoScaling=False)


def findings(resources: list[StackResource]) -> tuple[Finding, ...]:
    return aks_scaling.find(resources, {})


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
        ("default pools that are not known yet", [aks_cluster({"mode": "Auto", "defaultNodePools": UNKNOWN})]),
        ("two clusters, one of each kind", [aks_cluster(AUTO), aks_cluster(), *aks_pools(), aks_node_pool()]),
        ("profiles that are not known yet", [aks_cluster(AUTO, agentPoolProfiles=UNKNOWN)]),
    ],
)  # fmt: skip
def test_single_autoscaling_mode_passes(what: str, resources: list[StackResource]) -> None:
    assert findings(resources) == (), f"{what}: no finding"


def test_autoscaling_pools_beside_auto_provisioning_are_advised_against() -> None:
    spot, on_demand = aks_pools()
    inline = aks_cluster(AUTO, agentPoolProfiles=[{"name": "system", "enableAutoScaling": True}])
    found = findings([inline, spot, on_demand, namespace(), ladder()])
    assert [finding.urn for finding in found] == [spot.urn, on_demand.urn, inline.urn]
    assert "node pool 'system' autoscales in cluster 'cluster'" in found[2].message, found[2].message
    assert not any(finding.proven for finding in found)
    strands = findings([aks_cluster(), aks_node_pool(), namespace(), ladder()])
    assert [finding.proven for finding in strands] == [True]


@pytest.mark.parametrize("defaults", ["Auto", None])
def test_default_node_pools_of_aks_are_a_violation(defaults: Value) -> None:
    (finding,) = findings([aks_cluster({"mode": "Auto", "defaultNodePools": defaults})])
    assert "`nodeProvisioningProfile.defaultNodePools` to `None`" in finding.message


@pytest.mark.parametrize("provisioning", [None, {"mode": "Manual"}])
def test_node_pools_without_auto_provisioning_are_a_violation(provisioning: Value) -> None:
    node_pool = aks_node_pool()
    (finding,) = findings([aks_cluster(provisioning), node_pool])
    assert finding.urn == node_pool.urn, "its jobs would wait forever"
    assert "drains every node" in finding.message
