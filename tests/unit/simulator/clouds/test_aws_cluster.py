"""The stand-in's clusters are made, changed and deleted as EKS would have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.eks_stand_in import CLUSTER, NAME, NODE_GROUP, EksConsole
from tests.support.inputs import text
from tests.support.provider_calls import Engine, refusal

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
    from holdfast.simulator.pulumi.values import Value
    from tests.support.provider_calls import Provider


@pytest.fixture
def console(aws: Provider) -> EksConsole:
    return EksConsole(aws=aws)


def test_a_cluster_gets_an_address_an_issuer_and_a_security_group(console: EksConsole) -> None:
    _, made = console.engine(CLUSTER).create(console.cluster_inputs())
    network: Json = made["vpcConfig"]  # pyright: ignore[reportAssignmentType] - an object, here
    assert str(made["endpoint"]).endswith(".gr7.us-east-1.eks.amazonaws.com"), "kubectl calls it there"
    assert "https://oidc.eks.us-east-1.amazonaws.com/id/" in str(made["identities"]), (
        "tokens name their issuer"
    )
    assert text(network, "clusterSecurityGroupId").startswith("sg-"), "nodes carry the cluster's group"


def test_a_role_that_is_not_there_or_trusts_another_service_is_refused(console: EksConsole) -> None:
    wrong = console.role("workers", "ec2")
    for arn in ("arn:aws:iam::123456789012:role/nobody", wrong):
        inputs = console.cluster_inputs(roleArn=arn)
        reason = refusal(lambda inputs=inputs: console.engine(CLUSTER).create(inputs))
        assert reason == (
            f"InvalidParameterException: Role with arn: {arn} could not be assumed because it does not exist or the "
            "trusted entity is not correct"
        ), reason


def test_a_second_cluster_of_the_name_is_refused(console: EksConsole) -> None:
    inputs = console.cluster()
    reason = refusal(lambda: console.engine(CLUSTER, "two").create(inputs))
    assert reason == "ResourceInUseException: Cluster already exists with name: train", reason


@pytest.mark.parametrize(
    ("after", "passes"), [("1.35", False), ("1.36", True), ("1.37", True), ("1.38", False)]
)
def test_a_version_goes_up_one_at_a_time(console: EksConsole, after: str, *, passes: bool) -> None:
    inputs = console.cluster()

    def update() -> object:
        return console.engine(CLUSTER).update(NAME, {**inputs, "version": after})

    if passes:
        update()
    else:
        reason = refusal(update)
        assert reason.endswith(f"Unsupported Kubernetes minor version update from 1.36 to {after}"), reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bootstrapSelfManagedAddons", True),
        ("accessConfig", {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False}),
        ("kubernetesNetworkConfig", {"serviceIpv4Cidr": "10.100.0.0/16"}),
    ],
)
def test_what_eks_reads_only_once_replaces_the_cluster(console: EksConsole, name: str, value: Value) -> None:
    inputs = console.cluster_inputs()
    answer = console.engine(CLUSTER).diff(inputs, {**inputs, name: value})
    assert answer.replaces, f"a change of {name} is one of the cluster itself"
    assert answer.deleteBeforeReplace, "two clusters cannot bear one name"


def test_a_cluster_with_nodes_is_not_deleted(console: EksConsole) -> None:
    console.cluster()
    console.network_addons()
    console.node_group()
    reason = refusal(lambda: console.engine(CLUSTER).delete(NAME))
    assert reason == "ResourceInUseException: Cluster has nodegroups attached", reason
    console.engine(NODE_GROUP).delete(f"{NAME}:system")
    console.engine(CLUSTER).delete(NAME)
    assert console.engine(CLUSTER).read(NAME)[0] == "", "without nodes it goes"


def test_a_cluster_with_deletion_protection_is_not_deleted_until_it_is_lifted(console: EksConsole) -> None:
    inputs = console.cluster(deletionProtection=True)
    reason = refusal(lambda: console.engine(CLUSTER).delete(NAME))
    assert reason.startswith("InvalidRequestException"), reason
    console.engine(CLUSTER).update(NAME, {**inputs, "deletionProtection": False})
    console.engine(CLUSTER).delete(NAME)
    assert console.engine(CLUSTER).read(NAME)[0] == "", "the protection is lifted"


def test_what_is_made_in_a_cluster_that_is_not_there_is_refused(console: EksConsole, aws: Provider) -> None:
    inputs: dict[str, dict[str, Value]] = {
        NODE_GROUP: {"nodeRoleArn": "arn", "subnetIds": ["subnet-1"], "scalingConfig": {}},
        "aws:eks/addon:Addon": {"addonName": "vpc-cni"},
        "aws:eks/accessEntry:AccessEntry": {"principalArn": "arn:aws:iam::123456789012:role/platform"},
    }
    inputs[NODE_GROUP]["scalingConfig"] = {"desiredSize": 1, "minSize": 1, "maxSize": 1}
    for token, given in inputs.items():
        engine = Engine(provider=aws, type=token)
        reason = refusal(lambda engine=engine, given=given: engine.create({"clusterName": NAME, **given}))
        assert reason == "ResourceNotFoundException: No cluster found for name: train.", f"{token}: {reason}"
