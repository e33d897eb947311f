"""Simulated EKS node groups and add-ons have the prerequisites of real ones."""

import pytest

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import INSTANCE_TYPE, ZONE
from pulumi_holdfast.rehearsal.clouds.aws.node_pools import machines_of
from pulumi_holdfast.rehearsal.clouds.machines import MachineGroup, SimulatedMachine
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.engine.values import Properties
from tests.support.clusters.eks_console import NAME, NODE_GROUP, EksConsole
from tests.support.clusters.provider_calls import Provider, refused

_EBS_ACCOUNT = "ebs-csi-controller-sa"


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


def test_nodes_need_a_network_and_a_role_that_lets_them_join(console: EksConsole) -> None:
    refused(console.node_group, "NodeCreationFailure: Unhealthy nodes in the kubernetes cluster")
    console.network_addons()
    for service, policy, reason in (
        ("ec2", "AmazonEKS_CNI_Policy", "Instances failed to join the kubernetes cluster"),
        ("eks", "AmazonEKSWorkerNodePolicy", "principals [ec2.amazonaws.com] were not found in the trust"),
    ):
        role = console.role(f"of-{service}", service, policy)
        refused(lambda role=role: console.node_group(nodeRoleArn=role), reason)


@pytest.mark.parametrize("addon", ["coredns", "aws-ebs-csi-driver"])
def test_an_add_on_with_a_deployment_times_out_without_nodes(console: EksConsole, addon: str) -> None:
    console.identity(_EBS_ACCOUNT)
    refused(lambda: console.addon(addon), degraded(addon))


def test_an_add_on_needs_a_node_that_takes_it_and_the_ebs_driver_an_identity(console: EksConsole) -> None:
    console.network_addons()
    console.node_group()
    configurations: list[Properties] = [
        {"nodeSelector": {"team": "vision"}},
        {"tolerations": [{"key": "something-else", "operator": "Exists"}]},
        {"tolerations": [{"key": "CriticalAddonsOnly", "operator": "Equal", "value": "false"}]},
    ]
    for each in configurations:
        refused(lambda each=each: console.addon("coredns", configuration=each), degraded("coredns"))
    refused(lambda: console.addon("aws-ebs-csi-driver"), degraded("aws-ebs-csi-driver"))


_SUBNETS = [
    CloudObject(
        type="aws:ec2/subnet:Subnet",
        id=f"subnet-{zone}",
        urn="",
        inputs={"availabilityZone": f"eu-west-1{zone}"},
    )
    for zone in "abc"
]


def _machines(digest: str = "d", **inputs: JsonValue) -> list[SimulatedMachine]:
    asked: Json = {
        "clusterName": "prod",
        "nodeGroupName": "system",
        "subnetIds": ["subnet-a", "subnet-b"],
        "instanceTypes": ["m7i.large", "m6i.large"],
        "scalingConfig": {"desiredSize": 2, "minSize": 2, "maxSize": 3},
        **inputs,
    }
    arn = "arn:aws:eks:eu-west-1:123456789012:nodegroup/prod/system/x"
    group = CloudObject(
        type=NODE_GROUP, id="prod:system", urn="u", inputs=asked, computed={"arn": arn}, digest=digest
    )
    return list(machines_of(MachineGroup(target=group, inventory=Inventory(_SUBNETS, {}))))


def test_machines_are_spread_over_the_zones_of_the_subnets() -> None:
    assert [machine.labels[ZONE] for machine in _machines()] == ["eu-west-1a", "eu-west-1b"]
    found = _machines(subnetIds=["subnet-x", "subnet-y"])
    assert [machine.labels[ZONE] for machine in found] == ["eu-west-1a", "eu-west-1b"]


def test_labels_taints_and_type_are_the_groups() -> None:
    (one, _) = _machines(
        labels={"holdfast.dev/system": "true"},
        taints=[{"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}],
    )
    assert one.labels["holdfast.dev/system"] == "true"
    assert one.labels["eks.amazonaws.com/nodegroup"] == "system"
    assert one.labels[INSTANCE_TYPE] == "m7i.large"
    assert one.taints == ({"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"},)
    assert (one.capacity["cpu"], one.capacity["memory"]) == ("2", "8192Mi")
    assert one.provider_id.startswith("aws:///eu-west-1a/i-")
