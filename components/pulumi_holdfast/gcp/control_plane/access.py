"""How clients reach the API server of a GKE cluster: network access and kubeconfig."""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final, TypeAlias

from pulumi_holdfast.config.cidrs import PRIVATE

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
