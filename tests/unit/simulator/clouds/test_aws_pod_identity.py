"""EKS Pod Identity as the stand-in plays it."""

import re
from pathlib import Path

import pytest

from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.pulumi.values import Properties
from tests.support.provider_calls import Engine, Provider, refusal

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


def test_an_association_is_identified_as_eks_does(association: Engine) -> None:
    made, outputs = association.create(_INPUTS)
    assert re.fullmatch(r"a-[0-9a-z]{17}", made), "a- and 17 characters"
    assert str(outputs["associationArn"]).endswith(f":podidentityassociation/holdfast-dev/{made}"), (
        "in its ARN"
    )


def test_a_service_account_has_one_association(aws: Provider, association: Engine) -> None:
    made, _ = association.create(_INPUTS)
    second = Engine(provider=aws, type=_ASSOCIATION, name="two")
    reason = refusal(lambda: second.create(_INPUTS))
    assert reason == f"ResourceInUseException: Association already exists: {made}", reason
    assert second.create({**_INPUTS, "namespace": "tabular"})[0], "another namespace's is another"


def test_an_association_needs_its_cluster(aws: Provider) -> None:
    a_role(aws)
    reason = refusal(lambda: Engine(provider=aws, type=_ASSOCIATION).create(_INPUTS))
    assert reason == "ResourceNotFoundException: No cluster found for name: holdfast-dev.", reason


def test_an_association_needs_its_role(aws: Provider, state_file: Path) -> None:
    a_cluster(state_file)
    reason = refusal(lambda: Engine(provider=aws, type=_ASSOCIATION).create(_INPUTS))
    assert reason == "InvalidParameterException: Role provided in the request does not exist.", reason


def test_a_role_changes_in_place_and_whose_it_is_does_not(association: Engine) -> None:
    assert list(association.diff(_INPUTS, {**_INPUTS, "roleArn": "arn:other"}).replaces) == [], (
        "EKS updates it"
    )
    for name in ("clusterName", "namespace", "serviceAccount"):
        assert list(association.diff(_INPUTS, {**_INPUTS, name: "other"}).replaces) == [name], (
            f"{name} is fixed"
        )
