"""The credentials of Azure's identities as the stand-in plays them."""

import pytest

from holdfast.simulator.pulumi.values import Properties
from tests.support.provider_calls import Engine, Provider, refusal

_IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
_GROUP = "azure-native:resources:ResourceGroup"
_CREDENTIAL = "azure-native:managedidentity:FederatedIdentityCredential"

_ISSUER = "https://westeurope.oic.prod-aks.azure.com/tenant/cluster/"


def trusting(subject: str, name: str = "vision") -> Properties:
    """What a credential is made of."""
    return {
        "resourceGroupName": "trainers",
        "resourceName": "trainer",
        "federatedIdentityCredentialResourceName": name,
        "issuer": _ISSUER,
        "subject": f"system:serviceaccount:{subject}",
        "audiences": ["api://AzureADTokenExchange"],
    }


@pytest.fixture
def identity(azure: Provider) -> str:
    """The id of an identity."""
    Engine(provider=azure, type=_GROUP).create({"resourceGroupName": "trainers", "location": "westeurope"})
    inputs: Properties = {
        "resourceGroupName": "trainers",
        "resourceName": "trainer",
        "location": "westeurope",
    }
    return Engine(provider=azure, type=_IDENTITY).create(inputs)[0]


def credential(azure: Provider, name: str = "vision") -> Engine:
    """A credential that is not made yet."""
    return Engine(provider=azure, type=_CREDENTIAL, name=name)


def test_a_credential_is_part_of_its_identity(azure: Provider, identity: str) -> None:
    made, _ = credential(azure).create(trusting("vision:trainer"))
    assert made == f"{identity}/federatedIdentityCredentials/vision", "as Azure identifies it"


def test_a_credential_needs_its_identity(azure: Provider) -> None:
    reason = refusal(lambda: credential(azure).create(trusting("vision:trainer")))
    assert "The parent user-assigned identity" in reason, reason


@pytest.mark.usefixtures("identity")
def test_an_identity_trusts_a_service_account_once(azure: Provider) -> None:
    credential(azure).create(trusting("vision:trainer"))
    again = credential(azure, "again")
    reason = refusal(lambda: again.create(trusting("vision:trainer", "again")))
    assert "Issuer and subject combination already exists for this Managed Identity." in reason, reason
    assert again.create(trusting("tabular:trainer", "again"))[0], "another service account is another subject"


@pytest.mark.parametrize(
    "field", ["resourceName", "resourceGroupName", "federatedIdentityCredentialResourceName"]
)
def test_a_credential_of_another_identity_or_name_is_another(azure: Provider, field: str) -> None:
    old = trusting("vision:trainer")
    assert list(credential(azure).diff(old, {**old, field: "other"}).replaces) == [field], (
        "it cannot be moved"
    )
