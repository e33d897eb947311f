"""Simulated EKS clusters and their access are created, changed and deleted like real ones."""

import re
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds.aws.api_server import CALLER
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.engine.values import Properties, Value
from tests.support.clusters.eks_console import (
    ACCESS_ENTRY,
    ADDON,
    ASSOCIATION,
    CLUSTER,
    NAME,
    NODE_GROUP,
    EksConsole,
)
from tests.support.clusters.provider_calls import Engine, Provider, refused

_ADMIN = "arn:aws:iam::123456789012:role/platform"
_ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"


@pytest.fixture
def console(aws: Provider) -> EksConsole:
    return EksConsole(aws=aws)


def test_a_role_that_is_not_there_or_trusts_another_service_is_refused(console: EksConsole) -> None:
    for arn in ("arn:aws:iam::123456789012:role/missing", console.role("workers", "ec2")):
        reason = f"Role with arn: {arn} could not be assumed because it does not exist or the trusted entity"
        console.engine(CLUSTER).refuses_create(console.cluster_inputs(roleArn=arn), reason)


def test_a_version_goes_up_one_at_a_time(console: EksConsole) -> None:
    inputs, cluster = console.cluster(), console.engine(CLUSTER)
    for version in ("1.35", "1.38"):
        refused = f"Unsupported Kubernetes minor version update from 1.36 to {version}"
        cluster.refuses_update(NAME, {**inputs, "version": version}, refused)
    for version in ("1.36", "1.37"):
        assert cluster.update(NAME, {**inputs, "version": version})["version"] == version


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (
            NODE_GROUP,
            {
                "nodeRoleArn": "arn",
                "subnetIds": ["subnet-1"],
                "scalingConfig": {"desiredSize": 1, "minSize": 1, "maxSize": 1},
            },
        ),
        (ADDON, {"addonName": "vpc-cni"}),
        (ACCESS_ENTRY, {"principalArn": _ADMIN}),
        (_ASSOCIATION, {"namespace": "vision", "serviceAccount": "trainer", "roleArn": "arn"}),
    ],
)
def test_what_is_made_in_a_missing_cluster_fails(console: EksConsole, token: str, inputs: Properties) -> None:
    missing = "ResourceNotFoundException: No cluster found for name: train."
    console.engine(token).refuses_create({"clusterName": NAME, **inputs}, missing)


_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
_TAKEN = "ResourceInUseException: The specified access entry resource is already in use on this cluster."


def let_in(console: EksConsole, principal: str, *, name: str = "one", kind: str = "STANDARD") -> str:
    inputs: dict[str, Value] = {"clusterName": NAME, "principalArn": principal, "type": kind}
    return console.engine(ACCESS_ENTRY, name).create(inputs)[0]


def make_admin(console: EksConsole, principal: str) -> str:
    inputs: Properties = {"clusterName": NAME, "principalArn": principal, "policyArn": _POLICY}
    return console.engine(ASSOCIATION).create({**inputs, "accessScope": {"type": "cluster"}})[0]


def test_a_principal_has_one_access_entry_which_policies_need(console: EksConsole) -> None:
    console.cluster()
    missing = "ResourceNotFoundException: The specified principalArn could not be found."
    refused(lambda: make_admin(console, _ADMIN), missing)
    assert let_in(console, _ADMIN) == f"{NAME}:{_ADMIN}"
    assert make_admin(console, _ADMIN) == f"{NAME}#{_ADMIN}#{_POLICY}"
    for principal in (_ADMIN, CALLER):
        refused(lambda principal=principal: let_in(console, principal, name="two"), _TAKEN)


def test_an_access_entry_of_nodes_needs_its_role_and_managed_groups_have_one(console: EksConsole) -> None:
    console.cluster()
    missing = "InvalidParameterException: The specified principalArn is invalid: invalid principal."
    refused(lambda: let_in(console, "arn:aws:iam::123456789012:role/missing", kind="EC2_LINUX"), missing)
    assert let_in(console, console.role("karpenter", "ec2"), kind="EC2_LINUX")
    console.network_addons()
    role = console.node_group()
    refused(lambda: let_in(console, role, kind="EC2_LINUX"), _TAKEN)


_INPUTS: Properties = {
    "clusterName": "holdfast-dev",
    "namespace": "vision",
    "serviceAccount": "trainer",
    "roleArn": "arn:aws:iam::123456789012:role/checkpoints",
}


@pytest.fixture
def association(aws: Provider, state_file: Path) -> Engine:
    """An association that is not made yet, in an account with its cluster."""
    with CloudState(state_file).changing() as console:
        inputs = {"name": "holdfast-dev"}
        console.put(CloudObject(type=CLUSTER, id="holdfast-dev", urn="", inputs=inputs))
    return Engine(provider=aws, type=_ASSOCIATION)


def test_a_service_account_has_one_association_with_a_role(association: Engine, aws: Provider) -> None:
    missing = "InvalidParameterException: Role provided in the request does not exist."
    association.refuses_create(_INPUTS, missing)
    Engine(provider=aws, type="aws:iam/role:Role").create({"name": "checkpoints", "assumeRolePolicy": "{}"})
    made, outputs = association.create(_INPUTS)
    assert re.fullmatch(r"a-[0-9a-z]{17}", made)
    assert f":podidentityassociation/holdfast-dev/{made}" in str(outputs["associationArn"])
    second = Engine(provider=aws, type=_ASSOCIATION, name="two")
    second.refuses_create(_INPUTS, f"ResourceInUseException: Association already exists: {made}")
    assert second.create({**_INPUTS, "namespace": "tabular"})[0]
