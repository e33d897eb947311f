"""An EKS cluster's trust in the tokens of another cluster: one identity there, and no stored credential."""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Input, ResourceOptions
from pulumi_aws.eks import IdentityProviderConfig

from pulumi_holdfast.kubernetes.fallback_controller.transfer_policy import account_prefix
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT


@dataclass(frozen=True, kw_only=True)
class TrustedIssuerArgs:
    """`cluster` is the name that this cluster has for the other, and `issuer` that of its tokens.

    `audience` is the address of this cluster's API server, for which the other cluster's controller requests its tokens.
    """

    cluster_name: Input[str]
    cluster: str
    issuer: str
    audience: Input[str]


class TrustedIssuer(ComponentResource):
    """Authenticates the fallback controller of another cluster (`holdfast:index:TrustedIssuer`).

    Associates the OpenID Connect issuer of the other cluster; EKS allows one for each cluster. Tokens of other service
    accounts are refused. The association takes about 15 minutes, and every change replaces it.
    """

    def __init__(self, name: str, args: TrustedIssuerArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:TrustedIssuer", name, None, opts)
        IdentityProviderConfig(
            f"{name}-provider",
            cluster_name=args.cluster_name,
            oidc={
                "identity_provider_config_name": args.cluster,
                "issuer_url": args.issuer,
                "client_id": args.audience,
                "username_claim": "sub",
                "username_prefix": account_prefix(args.cluster),
                "required_claims": {"sub": CONTROLLER_ACCOUNT},
            },
            # A second one, made before the first is deleted, would be refused.
            opts=ResourceOptions(parent=self, delete_before_replace=True),
        )
        self.register_outputs({})
