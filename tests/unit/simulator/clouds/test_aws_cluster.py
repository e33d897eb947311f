"""Simulated EKS clusters and their access are created, changed and deleted like real ones."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.simulator.clouds.aws.api_server import CALLER
from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.pulumi.values import Properties, Value
from tests.support.clusters.eks_console import (
    ACCESS_ENTRY,
    ASSOCIATION,
    CLUSTER,
    NAME,
    NODE_GROUP,
    EksConsole,
)
from tests.support.clusters.provider_calls import Engine, Provider, refusal, refused
from tests.support.inputs import text

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json


@pytest.fixture
def console(aws: Provider) -> EksConsole:
    return EksConsole(aws=aws)


def test_a_cluster_gets_an_address_an_issuer_and_a_security_group(console: EksConsole) -> None:
    _, made = console.engine(CLUSTER).create(console.cluster_inputs())
    network: Json = made["vpcConfig"]  # pyright: ignore[reportAssignmentType] - an object, here
    assert str(made["endpoint"]).endswith(".gr7.us-east-1.eks.amazonaws.com"), "kubectl calls it there"
    assert "https://oidc.eks.us-east-1.amazonaws.com/id/" in str(made["identities"]), "the issuer of tokens"
    assert text(network, "clusterSecurityGroupId").startswith("sg-"), "nodes carry the cluster's group"


def test_a_role_that_is_not_there_or_trusts_another_service_is_refused(console: EksConsole) -> None:
    wrong = console.role("workers", "ec2")
    for arn in ("arn:aws:iam::123456789012:role/missing", wrong):
        inputs = console.cluster_inputs(roleArn=arn)
        console.engine(CLUSTER).refuses_create(
            inputs,
            f"InvalidParameterException: Role with arn: {arn} could not be assumed because it does not exist or the "
            "trusted entity is not correct",
        )


def test_a_cluster_has_its_name_alone_and_is_not_deleted_with_nodes(console: EksConsole) -> None:
    inputs = console.cluster()
    console.engine(CLUSTER, "two").refuses_create(
        inputs, "ResourceInUseException: Cluster already exists with name: train"
    )
    console.network_addons()
    console.node_group()
    console.engine(CLUSTER).refuses_delete(NAME, "ResourceInUseException: Cluster has nodegroups attached")
    console.engine(NODE_GROUP).delete(f"{NAME}:system")
    console.engine(CLUSTER).delete(NAME)
    assert console.engine(CLUSTER).read(NAME)[0] == "", "without nodes it goes"


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
        refused(update, f"Unsupported Kubernetes minor version update from 1.36 to {after}")


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


def test_a_cluster_with_deletion_protection_is_not_deleted_until_it_is_lifted(console: EksConsole) -> None:
    inputs = console.cluster(deletionProtection=True)
    console.engine(CLUSTER).refuses_delete(NAME, "InvalidRequestException")
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


_ADMIN = "arn:aws:iam::123456789012:role/platform"
_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
_TAKEN = "ResourceInUseException: The specified access entry resource is already in use on this cluster."


def let_in(console: EksConsole, principal: str, *, name: str = "one", kind: str = "STANDARD") -> str:
    inputs: dict[str, Value] = {"clusterName": NAME, "principalArn": principal, "type": kind}
    return console.engine(ACCESS_ENTRY, name).create(inputs)[0]


def make_admin(console: EksConsole, principal: str) -> str:
    inputs: dict[str, Value] = {
        "clusterName": NAME,
        "principalArn": principal,
        "policyArn": _POLICY,
        "accessScope": {"type": "cluster"},
    }
    return console.engine(ASSOCIATION).create(inputs)[0]


def test_an_access_entry_needs_its_role_and_exists_once(console: EksConsole) -> None:
    console.cluster()
    assert let_in(console, _ADMIN) == f"{NAME}:{_ADMIN}", "cluster and principal tell entries apart"
    refused(lambda: let_in(console, _ADMIN, name="two"), _TAKEN)
    refused(lambda: let_in(console, CALLER), _TAKEN)
    refused(
        lambda: let_in(console, "arn:aws:iam::123456789012:role/missing", kind="EC2_LINUX"),
        "InvalidParameterException: The specified principalArn is invalid: invalid principal.",
    )
    assert let_in(console, console.role("karpenter", "ec2"), kind="EC2_LINUX"), "one that is there is let in"


def test_a_creator_that_is_not_let_in_can_be_let_in_like_anybody(console: EksConsole) -> None:
    console.cluster(
        accessConfig={"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False}
    )
    assert let_in(console, CALLER), "there is no entry of EKS's own"


def test_the_role_of_a_managed_group_has_an_entry_that_eks_made(console: EksConsole) -> None:
    console.cluster()
    console.network_addons()
    role = console.node_group()
    refused(lambda: let_in(console, role, kind="EC2_LINUX"), _TAKEN)


def test_a_policy_needs_an_entry(console: EksConsole) -> None:
    console.cluster()
    refused(
        lambda: make_admin(console, _ADMIN),
        "ResourceNotFoundException: The specified principalArn could not be found.",
    )
    let_in(console, _ADMIN)
    assert make_admin(console, _ADMIN) == f"{NAME}#{_ADMIN}#{_POLICY}", "its id has all three parts"


_ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
_ROLE = "arn:aws:iam::123456789012:role/checkpoints"
_INPUTS: Properties = {
    "clusterName": "holdfast-dev",
    "namespace": "vision",
    "serviceAccount": "trainer",
    "roleArn": _ROLE,
}


def a_cluster(state_file: Path) -> None:
    with CloudState(state_file).changing() as console:
        inputs = {"name": "holdfast-dev"}
        console.put(CloudObject(type="aws:eks/cluster:Cluster", id="holdfast-dev", urn="", inputs=inputs))


def a_role(aws: Provider) -> None:
    Engine(provider=aws, type="aws:iam/role:Role").create({"name": "checkpoints", "assumeRolePolicy": "{}"})


@pytest.fixture
def association(aws: Provider, state_file: Path) -> Engine:
    """An association, in an account where its cluster and its role are."""
    a_cluster(state_file)
    a_role(aws)
    return Engine(provider=aws, type=_ASSOCIATION)


def test_an_association_has_an_id_of_eks_and_its_service_account_has_one(
    association: Engine, aws: Provider
) -> None:
    made, outputs = association.create(_INPUTS)
    assert re.fullmatch(r"a-[0-9a-z]{17}", made), "a- and 17 characters"
    assert str(outputs["associationArn"]).endswith(f":podidentityassociation/holdfast-dev/{made}"), (
        "in its ARN"
    )
    second = Engine(provider=aws, type=_ASSOCIATION, name="two")
    second.refuses_create(_INPUTS, f"ResourceInUseException: Association already exists: {made}")
    assert second.create({**_INPUTS, "namespace": "tabular"})[0], "another namespace's is another"


def test_an_association_needs_its_cluster(aws: Provider) -> None:
    a_role(aws)
    Engine(provider=aws, type=_ASSOCIATION).refuses_create(
        _INPUTS, "ResourceNotFoundException: No cluster found for name: holdfast-dev."
    )


def test_an_association_needs_its_role(aws: Provider, state_file: Path) -> None:
    a_cluster(state_file)
    Engine(provider=aws, type=_ASSOCIATION).refuses_create(
        _INPUTS, "InvalidParameterException: Role provided in the request does not exist."
    )


def test_a_role_changes_in_place_and_whose_it_is_does_not(association: Engine) -> None:
    assert list(association.diff(_INPUTS, {**_INPUTS, "roleArn": "arn:other"}).replaces) == [], "in place"
    for name in ("clusterName", "namespace", "serviceAccount"):
        assert list(association.diff(_INPUTS, {**_INPUTS, name: "other"}).replaces) == [name], "it is fixed"
