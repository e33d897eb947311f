"""Simulated Azure identities, credentials and role assignments."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds.azure.iam import has_role
from pulumi_holdfast.rehearsal.clouds.azure.names import CALLER
from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.engine.values import Properties
from tests.support.clusters.azure_console import NETWORK_CONTRIBUTOR, READER, AzureConsole
from tests.support.clusters.provider_calls import Engine, Provider, refused

_SUBNET = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/ml/subnets/nodes"


@pytest.fixture
def console(azure: Provider) -> AzureConsole:
    made = AzureConsole(azure=azure)
    made.group()
    return made


def test_only_a_new_principal_needs_its_type(console: AzureConsole) -> None:
    _, principal = console.identity()
    unknown = ('Code="PrincipalNotFound"', "set the role assignment principalType property")
    refused(lambda: console.grant(principal, READER, _SUBNET, principalType=None), *unknown)
    other = "has type 'ServicePrincipal' , which is different from specified"
    refused(lambda: console.grant(principal, READER, _SUBNET, principalType="User"), other)
    console.grant(CALLER, READER, _SUBNET, principalType=None)


@pytest.mark.parametrize(
    ("scope", "holds"),
    [
        (_SUBNET, True),
        (_SUBNET.upper(), True),
        (_SUBNET.rpartition("/subnets/")[0], False),
        (f"{_SUBNET}-of-others", False),
        (f"{_SUBNET}/ipConfigurations/a", True),
    ],
)
def test_a_role_is_inherited(console: AzureConsole, state_file: Path, scope: str, *, holds: bool) -> None:
    console.grant(CALLER, READER, _SUBNET)
    inventory = CloudState(state_file).read()
    assert has_role(inventory, principal_id=CALLER.upper(), role=READER, scope=scope) is holds
    assert not has_role(inventory, principal_id=CALLER, role=NETWORK_CONTRIBUTOR, scope=scope)


_IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
_GROUP = "azure-native:resources:ResourceGroup"
_CREDENTIAL = "azure-native:managedidentity:FederatedIdentityCredential"

_TRAINER: Properties = {"resourceGroupName": "trainers", "resourceName": "trainer"}


def trusting(subject: str, name: str = "vision") -> Properties:
    return {
        **_TRAINER,
        "federatedIdentityCredentialResourceName": name,
        "issuer": "https://westeurope.oic.prod-aks.azure.com/tenant/cluster/",
        "subject": f"system:serviceaccount:{subject}",
        "audiences": ["api://AzureADTokenExchange"],
    }


@pytest.fixture
def identity(azure: Provider) -> str:
    Engine(provider=azure, type=_GROUP).create({"resourceGroupName": "trainers", "location": "westeurope"})
    return Engine(provider=azure, type=_IDENTITY).create({**_TRAINER, "location": "westeurope"})[0]


def credential(azure: Provider, name: str = "vision") -> Engine:
    return Engine(provider=azure, type=_CREDENTIAL, name=name)


def test_a_credential_trusts_a_service_account_once(azure: Provider, identity: str) -> None:
    made, _ = credential(azure).create(trusting("vision:trainer"))
    assert made == f"{identity}/federatedIdentityCredentials/vision"
    again = credential(azure, "again")
    taken = "Issuer and subject combination already exists for this Managed Identity."
    again.refuses_create(trusting("vision:trainer", "again"), taken)
    assert again.create(trusting("tabular:trainer", "again"))[0]


def test_a_credential_needs_its_identity(azure: Provider) -> None:
    credential(azure).refuses_create(trusting("vision:trainer"), "The parent user-assigned identity")
