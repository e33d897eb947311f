"""From where the API server is reached. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final, TypeAlias

from holdfast.components.network.cidrs import PRIVATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_gcp.container import (
        ClusterControlPlaneEndpointsConfigArgsDict,
        ClusterMasterAuthorizedNetworksConfigArgsDict,
        ClusterPrivateClusterConfigArgsDict,
    )

    from holdfast.scheduling.json import Json


#: The program that whoever uses the kubeconfig needs on their PATH.
AUTH_PLUGIN: Final = "gke-gcloud-auth-plugin"

_INSTALL_HINT: Final = (
    f"{AUTH_PLUGIN} is not on PATH: install it with `gcloud components install {AUTH_PLUGIN}`, or as the package "
    f"google-cloud-cli-{AUTH_PLUGIN}"
)


@dataclass(frozen=True, kw_only=True)
class ApiServer:
    """Where the API server of a cluster is.

    `host` is a name or an address; `certificate_authority`, in base64, is the cluster's own, and None for the DNS
    endpoint: it has a certificate that every client trusts anyway, and the cluster's authority did not sign it.
    """

    cluster_name: str
    host: str
    certificate_authority: str | None


def kubeconfig(server: ApiServer) -> str:
    """A kubeconfig that holds no credential: whoever uses it is asked for their own."""
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
    # The credentials that Pulumi uses. Without this it is whoever `gcloud auth list` shows, who may be another.
    "args": ["--use_application_default_credentials"],
    "installHint": _INSTALL_HINT,
    # A prompt would hang an unattended run.
    "interactiveMode": "Never",
    "provideClusterInfo": True,
}


@dataclass(frozen=True, kw_only=True)
class DnsEndpoint:
    """By a name that Google answers at, and that lets in who has the IAM permission `container.clusters.connect`.

    It answers the whole internet, or no user at all: `allow_external` is there to say so aloud. Raises ValueError
    where it is not said: a cluster that nobody reaches could not be filled.
    """

    allow_external: bool

    def __post_init__(self) -> None:
        """Refuse an endpoint that is closed to the program as well."""
        if not self.allow_external:
            raise ValueError(
                "allow_external is false: a DNS endpoint is open to the internet, behind IAM, or closed to "
                "everybody; give AuthorizedNetworks instead"
            )

    def as_endpoints(self) -> ClusterControlPlaneEndpointsConfigArgsDict:
        """The endpoints of the control plane: this one, and no address."""
        return {
            "dns_endpoint_config": {"allow_external_traffic": True},
            "ip_endpoints_config": {"enabled": False},
        }

    def as_private_cluster(self) -> ClusterPrivateClusterConfigArgsDict:
        """Nodes without public addresses. GKE says itself which addresses there are, and takes no wish about them."""
        return {"enable_private_nodes": True}

    def as_authorized_networks(self) -> ClusterMasterAuthorizedNetworksConfigArgsDict | None:
        """None: without an address there is nobody to let in to it."""
        return None


@dataclass(frozen=True, kw_only=True)
class AuthorizedNetworks:
    """By address, from these ranges (`203.0.113.0/24`): nodes are let in without being named, nobody else is.

    With private ranges alone there is no public address. Raises ValueError for no range at all.
    """

    cidrs: Sequence[str]

    def __post_init__(self) -> None:
        """Refuse a cluster that only its own nodes would reach."""
        if not self.cidrs:
            raise ValueError("cidrs is empty: nobody but the nodes would reach the cluster; name a range")

    @property
    def has_public_address(self) -> bool:
        """Whether any of the ranges is of the internet."""
        return any(
            not any(IPv4Network(cidr, strict=False).subnet_of(private) for private in PRIVATE)
            for cidr in self.cidrs
        )

    def as_endpoints(self) -> ClusterControlPlaneEndpointsConfigArgsDict:
        """The endpoints of the control plane: addresses, and no name that answers users."""
        return {
            "dns_endpoint_config": {"allow_external_traffic": False},
            "ip_endpoints_config": {"enabled": True},
        }

    def as_private_cluster(self) -> ClusterPrivateClusterConfigArgsDict:
        """Nodes without public addresses, and a control plane with one only where a range needs it."""
        return {"enable_private_nodes": True, "enable_private_endpoint": not self.has_public_address}

    def as_authorized_networks(self) -> ClusterMasterAuthorizedNetworksConfigArgsDict | None:
        """The ranges, for the private address as well: otherwise the whole network and all it is peered with get in."""
        named: ClusterMasterAuthorizedNetworksConfigArgsDict = {
            "cidr_blocks": [{"cidr_block": cidr} for cidr in self.cidrs],
            "private_endpoint_enforcement_enabled": True,
        }
        # By default every machine on Google Cloud that has a public address is let in to a public address.
        return {**named, "gcp_public_cidrs_access_enabled": False} if self.has_public_address else named


ControlPlaneAccess: TypeAlias = DnsEndpoint | AuthorizedNetworks
