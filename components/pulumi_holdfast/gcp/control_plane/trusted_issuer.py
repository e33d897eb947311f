"""A GKE cluster's trust in the tokens of another cluster: one Google service account for it, and no stored credential.

GKE's API server takes no tokens of other issuers itself. Google's Security Token Service does: it exchanges a token of the other cluster's
controller for a federated one, which may get tokens of the service account.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_gcp.iam import WorkloadIdentityPool, WorkloadIdentityPoolProvider
from pulumi_gcp.projects import IAMCustomRole
from pulumi_gcp.projects import IAMMember as ProjectIAMMember
from pulumi_gcp.serviceaccount import Account
from pulumi_gcp.serviceaccount import IAMMember as AccountIAMMember

from pulumi_holdfast.kubernetes.ordering import tied_to
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT

if TYPE_CHECKING:
    from pulumi_holdfast.ladder.json import Json

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
