"""The stand-in's access entries: one for each principal, and some that EKS makes itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.simulator.clouds.aws.api_server import CALLER
from tests.support.eks_stand_in import ACCESS_ENTRY, ASSOCIATION, NAME, EksConsole
from tests.support.provider_calls import refusal

if TYPE_CHECKING:
    from holdfast.simulator.pulumi.values import Value
    from tests.support.provider_calls import Provider

_ADMIN = "arn:aws:iam::123456789012:role/platform"
_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
_TAKEN = "ResourceInUseException: The specified access entry resource is already in use on this cluster."


@pytest.fixture
def console(aws: Provider) -> EksConsole:
    return EksConsole(aws=aws)


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


def test_a_principal_is_let_in_once(console: EksConsole) -> None:
    console.cluster()
    assert let_in(console, _ADMIN) == f"{NAME}:{_ADMIN}", "cluster and principal tell entries apart"
    reason = refusal(lambda: let_in(console, _ADMIN, name="two"))
    assert reason == _TAKEN, reason


def test_the_creator_has_an_entry_from_the_beginning(console: EksConsole) -> None:
    console.cluster()
    reason = refusal(lambda: let_in(console, CALLER))
    assert reason == _TAKEN, reason


def test_a_creator_that_is_not_let_in_can_be_let_in_like_anybody(console: EksConsole) -> None:
    console.cluster(
        accessConfig={"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False}
    )
    assert let_in(console, CALLER), "there is no entry of EKS's own"


def test_the_role_of_a_managed_group_has_an_entry_that_eks_made(console: EksConsole) -> None:
    console.cluster()
    console.network_addons()
    role = console.node_group()
    reason = refusal(lambda: let_in(console, role, kind="EC2_LINUX"))
    assert reason == _TAKEN, reason


def test_nodes_of_a_role_that_is_not_there_are_refused(console: EksConsole) -> None:
    console.cluster()
    reason = refusal(lambda: let_in(console, "arn:aws:iam::123456789012:role/nobody", kind="EC2_LINUX"))
    assert reason == "InvalidParameterException: The specified principalArn is invalid: invalid principal.", (
        reason
    )
    assert let_in(console, console.role("karpenter", "ec2"), kind="EC2_LINUX"), "one that is there is let in"


def test_a_policy_needs_an_entry(console: EksConsole) -> None:
    console.cluster()
    reason = refusal(lambda: make_admin(console, _ADMIN))
    assert reason.startswith("ResourceNotFoundException: The specified principalArn could not be found."), (
        reason
    )
    let_in(console, _ADMIN)
    assert make_admin(console, _ADMIN) == f"{NAME}#{_ADMIN}#{_POLICY}", (
        "cluster, principal and policy name it"
    )
