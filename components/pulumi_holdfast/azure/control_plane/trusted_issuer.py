"""An AKS cluster's trust in the tokens of another cluster: one managed identity for it, and no stored credential.

AKS's API server takes tokens of Microsoft Entra ID. Entra ID takes a token of the other cluster's controller as the assertion of the identity,
and issues one for the API server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_azure_native.managedidentity import FederatedIdentityCredential, UserAssignedIdentity

from pulumi_holdfast.azure.control_plane.access import SERVER_APPLICATION
from pulumi_holdfast.kubernetes.ordering import tied_to
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT

if TYPE_CHECKING:
    from pulumi_holdfast.ladder.json import Json

# What Entra ID expects the token to be for.
_AUDIENCE: Final = "api://AzureADTokenExchange"
_AUTHORITY: Final = "https://login.microsoftonline.com"


@dataclass(frozen=True, kw_only=True)
class TrustedIssuerArgs:
    """`issuer` is that of the other cluster's tokens.

    The identity is created in `resource_group` and `location` of the tenant `tenant_id`.
    """

    resource_group: Input[str]
    location: str
    tenant_id: str
    issuer: str


class TrustedIssuer(ComponentResource):
    """Authenticates the fallback controller of another cluster (`holdfast:index:TrustedIssuer`).

    Creates a UserAssignedIdentity without any role, and its FederatedIdentityCredential for that controller; tokens of other
    service accounts are refused. Entra ID needs a few minutes to accept a new credential. `users` has the API server's name
    of the identity, its object ID; `exchange` is the configuration for the other cluster.
    """

    def __init__(self, name: str, args: TrustedIssuerArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:TrustedIssuer", name, None, opts)
        identity = UserAssignedIdentity(
            f"{name}-identity",
            resource_group_name=args.resource_group,
            location=args.location,
            opts=ResourceOptions(parent=self),
        )
        credential = FederatedIdentityCredential(
            f"{name}-credential",
            resource_name_=identity.name,
            resource_group_name=args.resource_group,
            issuer=args.issuer,
            subject=CONTROLLER_ACCOUNT,
            audiences=[_AUDIENCE],
            opts=ResourceOptions(parent=self),
        )
        self.users = [identity.principal_id]
        self.exchange: Output[Json] = tied_to(identity.client_id, [credential]).apply(
            lambda client: token_exchange(args.tenant_id, client)
        )
        self.register_outputs({"exchange": self.exchange})


def token_exchange(tenant_id: str, client_id: str) -> Json:
    """Return how a token is exchanged for one of an identity: its audience, and the names of tenant, identity and API server."""
    return {
        "tokenAudience": _AUDIENCE,
        "entra": {
            "authority": _AUTHORITY,
            "tenantId": tenant_id,
            "clientId": client_id,
            "scope": f"{SERVER_APPLICATION}/.default",
        },
    }
