"""What the stacks of Google Cloud and Azure ask their clouds for when they accept jobs, given to the services on this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from pulumi_holdfast.azure.control_plane import access as aks
from pulumi_holdfast.gcp.control_plane import access as gke
from tests.support.clusters.token_services import Keys, TokenServices, Trust
from tests.support.fakes.cloud_outputs import CLIENT, PRINCIPAL
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import text
from tests.support.json_objects import obj

if TYPE_CHECKING:
    from pulumi_holdfast.ladder.json import Json
    from pulumi_holdfast.rehearsal.control_plane.configuration import KubeconfigCluster

_PROJECT: Final = "ml-dev"
_NUMBER: Final = "123456789012"
_TENANT: Final = "tenant"


def _build_gke(issuer: str) -> None:
    args = gke.TrustedIssuerArgs(
        project=_PROJECT, project_number=_NUMBER, account_id="from-home", cluster="home", issuer=issuer
    )
    gke.TrustedIssuer("issuer", args)


def _build_aks(issuer: str) -> None:
    args = aks.TrustedIssuerArgs(resource_group="group", location="eastus2", tenant_id=_TENANT, issuer=issuer)
    aks.TrustedIssuer("issuer", args)


def services_for(home: KubeconfigCluster, issuer: str) -> TokenServices:
    """Return the services as the components ask Google Cloud and Azure for them; `issuer` is that of the tokens of `home`."""
    google, azure = record(lambda: _build_gke(issuer)), record(lambda: _build_aks(issuer))
    provider = google.one(":WorkloadIdentityPoolProvider")
    pool = text(provider, "workloadIdentityPoolId")
    resource = f"projects/{_NUMBER}/locations/global/workloadIdentityPools/{pool}/providers/home"
    account = text(google.one(":Account"), "accountId")
    credential = azure.one(":FederatedIdentityCredential")
    (audience,) = cast("list[str]", credential.inputs["audiences"])
    entra = obj(aks.token_exchange(_TENANT, CLIENT)["entra"])
    return TokenServices(
        keys=Keys(server=home.server, authority=home.authority),
        google=Trust(
            issuer=str(obj(provider.inputs["oidc"])["issuerUri"]),
            # A provider without audiences takes tokens for itself.
            audience=f"https://iam.googleapis.com/{resource}",
            subject=text(provider, "attributeCondition").removeprefix('assertion.sub == "').removesuffix('"'),
        ),
        entra=Trust(
            issuer=text(credential, "issuer"), audience=audience, subject=text(credential, "subject")
        ),
        google_email=f"{account}@{_PROJECT}.iam.gserviceaccount.com",
        entra_object_id=PRINCIPAL,
        entra_client_id=CLIENT,
        entra_scope=str(entra["scope"]),
    )


def exported_exchange(cloud: str, services: TokenServices) -> Json:
    """Return what a stack exports for a home, with the addresses of this machine."""
    resource = services.google.audience.removeprefix("https://iam.googleapis.com/")
    exported = {
        "google": gke.token_exchange(resource, services.google_email),
        "entra": aks.token_exchange(_TENANT, CLIENT),
    }[cloud]
    written = json.dumps(exported)
    for address in (
        "https://sts.googleapis.com",
        "https://iamcredentials.googleapis.com",
        "https://login.microsoftonline.com",
    ):
        written = written.replace(address, services.address)
    return cast("Json", json.loads(written))
