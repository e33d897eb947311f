"""How clients reach the API server of a GKE cluster: network access, kubeconfig, and trust in another cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final, TypeAlias

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_gcp.iam import WorkloadIdentityPool, WorkloadIdentityPoolProvider
from pulumi_gcp.projects import IAMCustomRole
from pulumi_gcp.projects import IAMMember as ProjectIAMMember
from pulumi_gcp.serviceaccount import Account
from pulumi_gcp.serviceaccount import IAMMember as AccountIAMMember

from pulumi_holdfast.config.cidrs import PRIVATE
from pulumi_holdfast.kubernetes.kubernetes_object import tied_to
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_gcp.container import (
        ClusterControlPlaneEndpointsConfigArgsDict,
        ClusterMasterAuthorizedNetworksConfigArgsDict,
        ClusterPrivateClusterConfigArgsDict,
    )

    from pulumi_holdfast.ladder.json import Json


#: The program that users of the kubeconfig need on their PATH.
AUTH_PLUGIN: Final = "gke-gcloud-auth-plugin"

_INSTALL_HINT: Final = (
    f"{AUTH_PLUGIN} is not on PATH: install it with `gcloud components install {AUTH_PLUGIN}`, or as the package "
    f"google-cloud-cli-{AUTH_PLUGIN}"
)


@dataclass(frozen=True, kw_only=True)
class ApiServer:
    """The API server of a cluster.

    `host` is a name or an address. `certificate_authority`, in base64, is the cluster's own; None for the DNS
    endpoint, whose certificate is signed by a public authority.
    """

    cluster_name: str
    host: str
    certificate_authority: str | None


def kubeconfig(server: ApiServer) -> str:
    """Return a kubeconfig without a credential: it calls Google's plugin for the user's own."""
    authority: Json = (
        {}
        if server.certificate_authority is None
        else {"certificate-authority-data": server.certificate_authority}
    )
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": server.cluster_name, "cluster": {"server": f"https://{server.host}", **authority}}
        ],
        "contexts": [
            {
                "name": server.cluster_name,
                "context": {"cluster": server.cluster_name, "user": server.cluster_name},
            }
        ],
        "current-context": server.cluster_name,
        "users": [{"name": server.cluster_name, "user": {"exec": _TOKEN_COMMAND}}],
    }
    return json.dumps(document)


_TOKEN_COMMAND: Final[Json] = {
    "apiVersion": "client.authentication.k8s.io/v1beta1",
    "command": AUTH_PLUGIN,
    # The same credentials as Pulumi's. Without it the plugin uses the active account of `gcloud auth list`.
    "args": ["--use_application_default_credentials"],
    "installHint": _INSTALL_HINT,
    # A prompt would block an unattended run.
    "interactiveMode": "Never",
    "provideClusterInfo": True,
}


@dataclass(frozen=True, kw_only=True)
class DnsEndpoint:
    """A DNS name, open to clients with the IAM permission `container.clusters.connect`.

    GKE opens it to the whole internet or to no user at all: `allow_external` must be true to make that
    explicit. Raises ValueError otherwise, because the program itself could not reach the cluster.
    """

    allow_external: bool

    def __post_init__(self) -> None:
        if not self.allow_external:
            raise ValueError(
                "allow_external is false, which closes the DNS endpoint to all users: set it to true (IAM still "
                "applies), or use AuthorizedNetworks"
            )

    def as_endpoints(self) -> ClusterControlPlaneEndpointsConfigArgsDict:
        """Return the endpoints of the control plane: the DNS name and no address."""
        return {
            "dns_endpoint_config": {"allow_external_traffic": True},
            "ip_endpoints_config": {"enabled": False},
        }

    def as_private_cluster(self) -> ClusterPrivateClusterConfigArgsDict:
        """Return private nodes. GKE sets the endpoint's addresses itself and accepts no setting."""
        return {"enable_private_nodes": True}

    def as_authorized_networks(self) -> ClusterMasterAuthorizedNetworksConfigArgsDict | None:
        """Return None: there is no address to restrict."""
        return None


@dataclass(frozen=True, kw_only=True)
class AuthorizedNetworks:
    """An address, open to these ranges (`203.0.113.0/24`) and to the nodes.

    With private ranges only, there is no public address. Raises ValueError if there is no range.
    """

    cidrs: Sequence[str]

    def __post_init__(self) -> None:
        if not self.cidrs:
            raise ValueError("cidrs is empty, so only nodes could reach the cluster: add a range")

    @property
    def has_public_address(self) -> bool:
        """Whether a range is outside the private address ranges."""
        return any(
            not any(IPv4Network(cidr, strict=False).subnet_of(private) for private in PRIVATE)
            for cidr in self.cidrs
        )

    def as_endpoints(self) -> ClusterControlPlaneEndpointsConfigArgsDict:
        """Return the endpoints of the control plane: addresses and no DNS name for users."""
        return {
            "dns_endpoint_config": {"allow_external_traffic": False},
            "ip_endpoints_config": {"enabled": True},
        }

    def as_private_cluster(self) -> ClusterPrivateClusterConfigArgsDict:
        """Return private nodes, and a public endpoint only if a range needs it."""
        return {"enable_private_nodes": True, "enable_private_endpoint": not self.has_public_address}

    def as_authorized_networks(self) -> ClusterMasterAuthorizedNetworksConfigArgsDict | None:
        """Return the ranges. They also restrict the private address; otherwise all peered networks get in."""
        named: ClusterMasterAuthorizedNetworksConfigArgsDict = {
            "cidr_blocks": [{"cidr_block": cidr} for cidr in self.cidrs],
            "private_endpoint_enforcement_enabled": True,
        }
        # By default the public address is open to all public addresses of Google Cloud.
        return {**named, "gcp_public_cidrs_access_enabled": False} if self.has_public_address else named


ControlPlaneAccess: TypeAlias = DnsEndpoint | AuthorizedNetworks


#: Reads where a cluster is, and passes its DNS-based endpoint. What the account may do in the cluster, RBAC says.
PERMISSIONS: Final = ("container.clusters.connect", "container.clusters.get")

# Of the one provider in each pool.
_PROVIDER: Final = "home"

_ROLE: Final = "roles/iam.workloadIdentityUser"


@dataclass(frozen=True, kw_only=True)
class TrustedIssuerArgs:
    """`cluster` is the name that this cluster has for the other, and `issuer` that of its tokens.

    `account_id` is the name of the service account, at most 30 characters. `project_number` is that of `project`, the cluster's.
    """

    project: str
    project_number: str
    account_id: str
    cluster: str
    issuer: str


class TrustedIssuer(ComponentResource):
    """Authenticates the fallback controller of another cluster (`holdfast:index:TrustedIssuer`).

    Creates a service account; a workload identity pool with a provider for the issuer of the other cluster, which refuses tokens of its other
    service accounts; the grant by which that controller gets tokens of the account; and a custom role with its grant, by which GKE lets the
    account in. A project has room for 100 pools. `users` are the names that the cluster's API server has for the account, and
    `exchange` is what the other cluster needs.
    """

    def __init__(self, name: str, args: TrustedIssuerArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:TrustedIssuer", name, None, opts)
        inside = ResourceOptions(parent=self)
        account = Account(
            f"{name}-account",
            account_id=args.account_id,
            project=args.project,
            display_name=f"Fallback controller of the cluster {args.cluster}",
            opts=inside,
        )
        # Google keeps the name of a deleted pool for 30 days and that of a role for 37. No two accounts ever have one unique ID.
        pool = WorkloadIdentityPool(
            f"{name}-pool",
            workload_identity_pool_id=account.unique_id.apply(lambda number: f"holdfast-{number}"),
            project=args.project,
            description=f"Fallback controller of the cluster {args.cluster}",
            opts=inside,
        )
        path = Output.concat(
            f"projects/{args.project_number}/locations/global/workloadIdentityPools/",
            pool.workload_identity_pool_id,
        )
        provider = WorkloadIdentityPoolProvider(
            f"{name}-provider",
            workload_identity_pool_id=pool.workload_identity_pool_id,
            workload_identity_pool_provider_id=_PROVIDER,
            project=args.project,
            # Without audiences it takes tokens for itself alone.
            oidc={"issuer_uri": args.issuer},
            attribute_mapping={"google.subject": "assertion.sub"},
            attribute_condition=f'assertion.sub == "{CONTROLLER_ACCOUNT}"',
            opts=inside,
        )
        impersonation = AccountIAMMember(
            f"{name}-impersonation",
            service_account_id=account.name,
            role=_ROLE,
            member=Output.concat("principal://iam.googleapis.com/", path, "/subject/", CONTROLLER_ACCOUNT),
            opts=inside,
        )
        role = IAMCustomRole(
            f"{name}-role",
            role_id=account.unique_id.apply(lambda number: f"holdfast_{number}"),
            project=args.project,
            title=f"Holdfast: fallback controller of {args.cluster}",
            description="Reaches the API servers of clusters; RBAC determines its permissions there.",
            permissions=[*PERMISSIONS],
            opts=inside,
        )
        entry = ProjectIAMMember(
            f"{name}-entry",
            project=args.project,
            role=role.name,
            member=account.email.apply(lambda email: f"serviceAccount:{email}"),
            opts=inside,
        )
        # By its unique ID, if a token were to lack the scope of the email.
        self.users = [account.email, account.unique_id]
        resource = Output.concat(path, "/providers/", provider.workload_identity_pool_provider_id)
        # After the grants: with it, the other controller begins to request tokens.
        self.exchange: Output[Json] = Output.all(
            resource, tied_to(account.email, [impersonation, entry])
        ).apply(lambda known: token_exchange(*known))
        self.register_outputs({"exchange": self.exchange})


def token_exchange(provider: str, email: str) -> Json:
    """Return how a token is exchanged for one of a service account: its audience, and Google's credential configuration.

    `provider` is the resource name of the provider. The configuration is what `gcloud iam workload-identity-pools create-cred-config`
    writes, without the file of the token, which is the other cluster's.
    """
    return {
        "tokenAudience": f"https://iam.googleapis.com/{provider}",
        "google": {
            "universe_domain": "googleapis.com",
            "type": "external_account",
            "audience": f"//iam.googleapis.com/{provider}",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": "https://sts.googleapis.com/v1/token",
            "service_account_impersonation_url": "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/"
            f"{email}:generateAccessToken",
        },
    }
