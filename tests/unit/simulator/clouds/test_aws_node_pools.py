"""The stand-in's nodes and add-ons need what EKS's need, in the order in which they need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.eks_stand_in import ADDON, NAME, NODE_GROUP, EksConsole
from tests.support.provider_calls import refusal

if TYPE_CHECKING:
    from holdfast.simulator.pulumi.values import Properties
    from tests.support.provider_calls import Provider

_EBS_ACCOUNT = "ebs-csi-controller-sa"
_ON_SYSTEM_NODES: Properties = {
    "nodeSelector": {"holdfast.dev/system": "true"},
    "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
}


@pytest.fixture
def console(aws: Provider) -> EksConsole:
    made = EksConsole(aws=aws)
    made.cluster()
    return made


def degraded(addon: str) -> str:
    return (
        f"waiting for EKS Add-On ({NAME}:{addon}) create: timeout while waiting for state to become 'ACTIVE' "
        "(last state: 'DEGRADED', timeout: 20m0s)"
    )


def test_nodes_without_a_network_never_get_ready(console: EksConsole) -> None:
    reason = refusal(console.node_group)
    assert reason.endswith("NodeCreationFailure: Unhealthy nodes in the kubernetes cluster"), reason


def test_nodes_that_may_not_join_do_not(console: EksConsole) -> None:
    console.network_addons()
    role = console.role("powerless", "ec2", "AmazonEKS_CNI_Policy")
    reason = refusal(lambda: console.node_group(nodeRoleArn=role))
    assert reason.endswith("NodeCreationFailure: Instances failed to join the kubernetes cluster"), reason


def test_machines_that_cannot_assume_their_role_are_refused(console: EksConsole) -> None:
    console.network_addons()
    role = console.role("misled", "eks", "AmazonEKSWorkerNodePolicy")
    reason = refusal(lambda: console.node_group(nodeRoleArn=role))
    assert "required service principals [ec2.amazonaws.com] were not found in the trust" in reason, reason


def test_a_group_has_its_clusters_version_and_keeps_the_release_of_its_image(console: EksConsole) -> None:
    console.network_addons()
    console.node_group()
    group = console.engine(NODE_GROUP)
    _, before, inputs = group.read(f"{NAME}:system")
    assert before["version"] == "1.36", "it runs the cluster's Kubernetes"
    after = group.update(f"{NAME}:system", {**inputs, "labels": {"team": "vision"}})
    assert after["releaseVersion"] == before["releaseVersion"], (
        "a newer image comes only when it is asked for"
    )


@pytest.mark.parametrize("addon", ["coredns", "aws-ebs-csi-driver"])
def test_an_add_on_with_a_deployment_times_out_where_there_is_no_node(
    console: EksConsole, addon: str
) -> None:
    console.identity(_EBS_ACCOUNT)
    reason = refusal(lambda: console.addon(addon))
    assert reason == degraded(addon), reason


@pytest.mark.parametrize(
    "configuration",
    [
        {"nodeSelector": {"team": "vision"}},
        {"tolerations": [{"key": "something-else", "operator": "Exists"}]},
        {"tolerations": [{"key": "CriticalAddonsOnly", "operator": "Equal", "value": "false"}]},
    ],
)
def test_an_add_on_that_no_node_takes_times_out_as_well(
    console: EksConsole, configuration: Properties
) -> None:
    console.network_addons()
    console.node_group()
    reason = refusal(lambda: console.addon("coredns", configuration=configuration))
    assert reason == degraded("coredns"), reason


def test_all_five_add_ons_come_up_in_the_right_order(console: EksConsole) -> None:
    console.network_addons()
    console.addon("eks-pod-identity-agent", configuration={"tolerations": [{"operator": "Exists"}]})
    console.node_group()
    console.addon("coredns", configuration=_ON_SYSTEM_NODES)
    console.identity(_EBS_ACCOUNT)
    console.addon("aws-ebs-csi-driver", configuration={"controller": _ON_SYSTEM_NODES})
    assert console.engine(ADDON).read(f"{NAME}:aws-ebs-csi-driver")[0], "the last of them is there"


def test_coredns_tolerates_the_system_nodes_without_being_told(console: EksConsole) -> None:
    console.network_addons()
    console.node_group()
    console.addon("coredns")
    assert console.engine(ADDON).read(f"{NAME}:coredns")[0], "its own tolerations are enough"


def test_the_ebs_driver_without_an_identity_is_never_healthy(console: EksConsole) -> None:
    console.network_addons()
    console.node_group()
    reason = refusal(lambda: console.addon("aws-ebs-csi-driver"))
    assert reason == degraded("aws-ebs-csi-driver"), reason


def test_an_add_on_is_installed_once(console: EksConsole) -> None:
    console.addon("vpc-cni")
    reason = refusal(lambda: console.addon("vpc-cni"))
    assert reason == "ResourceInUseException: Addon already exists.", reason
