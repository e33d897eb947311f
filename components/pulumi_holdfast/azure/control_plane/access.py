"""How clients reach the API server of an AKS cluster: network access, kubeconfig, address ranges, and trust in another cluster."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

import yaml
from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_azure_native.managedidentity import FederatedIdentityCredential, UserAssignedIdentity

from pulumi_holdfast.kubernetes.kubernetes_object import tied_to
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_azure_native.containerservice import ManagedClusterAPIServerAccessProfileArgsDict

    from pulumi_holdfast.ladder.json import Json, JsonValue


@dataclass(frozen=True, kw_only=True)
class PublicAccess:
    """A public address, open to these ranges (`203.0.113.0/24`) and to the nodes.

    The ranges must include the machine that runs `pulumi`. Raises ValueError if there is none, because AKS
    takes that as the whole internet.
    """

    cidrs: Sequence[str]

    def __post_init__(self) -> None:
        if not self.cidrs:
            raise ValueError("cidrs is empty, which AKS takes as the whole internet: add a range")

    def as_profile(self, egress_cidrs: Sequence[Input[str]]) -> ManagedClusterAPIServerAccessProfileArgsDict:
        """Return AKS's access profile.

        `egress_cidrs` are the source ranges of the nodes, which use the public address too. AKS adds only
        those of its own load balancer: nodes behind a NAT gateway that is missing here never join.
        """
        return {"enable_private_cluster": False, "authorized_ip_ranges": [*self.cidrs, *egress_cidrs]}

    @property
    def name_to_use(self) -> Literal["public"] | None:
        """Which of the cluster's names clients use; None: its only one."""
        return None


@dataclass(frozen=True, kw_only=True)
class PrivateAccess:
    """A private address in the nodes' network: `pulumi` must run in that network or in one connected to it.

    `public_name` makes the name of the private address resolvable on the internet, which opens no access.
    Otherwise only hosts in networks that are linked to the cluster's private DNS zone can resolve it; AKS
    links the nodes' network.
    """

    public_name: bool = False

    def as_profile(self, egress_cidrs: Sequence[Input[str]]) -> ManagedClusterAPIServerAccessProfileArgsDict:
        """Return AKS's access profile, which has no ranges for a private address."""
        del egress_cidrs
        return {
            "enable_private_cluster": True,
            "enable_private_cluster_public_fqdn": self.public_name,
            "private_dns_zone": "system",
        }

    @property
    def name_to_use(self) -> Literal["public"] | None:
        """Which of the cluster's names clients use; None: the private one."""
        return "public" if self.public_name else None


ApiServerAccess: TypeAlias = PublicAccess | PrivateAccess


#: The index of the DNS address in the range of Services; index 1 is the API server.
_DNS: Final = 10


def dns_service_ip(services_cidr: str) -> str:
    """Return the address of the cluster's DNS, which AKS only knows for its own default range."""
    return str(IPv4Network(services_cidr)[_DNS])


#: The program that users of the kubeconfig need on their PATH.
KUBELOGIN: Final = "kubelogin"

#: Whose credentials kubelogin uses: the Azure CLI's, a federated token's or a service principal's. Users that
#: need another one set AAD_LOGIN_METHOD, which takes precedence and leaves the stack unchanged.
Login: TypeAlias = Literal["azurecli", "workloadidentity", "spn"]

#: The Entra ID application for which tokens are issued, the same for every AKS cluster.
SERVER_APPLICATION: Final = "6dae42f8-4368-4678-94ff-3960e28e3630"

_INSTALL_HINT: Final = f"{KUBELOGIN} is not on PATH: install it with `az aks install-cli`, or from https://azure.github.io/kubelogin"


@dataclass(frozen=True, kw_only=True)
class ApiServer:
    """The URL of a cluster's API server and its certificate authority in base64."""

    url: str
    certificate_authority: str


def api_server(credentials: str) -> ApiServer:
    """Return the API server from AKS's credentials, which are a kubeconfig in base64.

    No other output contains the certificate authority. Raises ValueError if the credentials lack it.
    """
    try:
        document = cast("JsonValue", yaml.safe_load(base64.b64decode(credentials, validate=True)))
    except (binascii.Error, UnicodeDecodeError, yaml.YAMLError):
        document = None
    clusters = _at(document, "clusters")
    first = clusters[0] if isinstance(clusters, list) and clusters else None
    url, authority = (_text(_at(first, "cluster"), key) for key in ("server", "certificate-authority-data"))
    if url is None or authority is None:
        raise ValueError("AKS returned credentials without the API server or its certificate authority")
    return ApiServer(url=url, certificate_authority=authority)


def _at(value: JsonValue, key: str) -> JsonValue:
    return value.get(key) if isinstance(value, dict) else None


def _text(value: JsonValue, key: str) -> str | None:
    found = _at(value, key)
    return found if isinstance(found, str) else None


def kubeconfig(server: ApiServer, *, cluster_name: str, tenant_id: str, login: Login) -> str:
    """Return a kubeconfig without a credential: it calls kubelogin for the user's own."""
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": cluster_name,
                "cluster": {"server": server.url, "certificate-authority-data": server.certificate_authority},
            }
        ],
        "contexts": [{"name": cluster_name, "context": {"cluster": cluster_name, "user": cluster_name}}],
        "current-context": cluster_name,
        "users": [{"name": cluster_name, "user": {"exec": _token_command(tenant_id, login)}}],
    }
    return json.dumps(document)


def _token_command(tenant_id: str, login: Login) -> Json:
    arguments: Sequence[str] = (
        "get-token",
        "--login",
        login,
        "--environment",
        "AzurePublicCloud",
        "--server-id",
        SERVER_APPLICATION,
        "--tenant-id",
        tenant_id,
    )
    return {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": KUBELOGIN,
        "args": [*arguments],
        "installHint": _INSTALL_HINT,
        # A prompt would block an unattended run.
        "interactiveMode": "Never",
        "provideClusterInfo": False,
    }


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
