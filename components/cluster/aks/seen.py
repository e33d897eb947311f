"""What AKS says of a cluster once it is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pulumi import InvokeOutputOptions
from pulumi_azure_native.containerservice import (
    get_managed_cluster_output,
    list_managed_cluster_user_credentials_output,
)

from holdfast.components.cluster.aks.kubeconfig import api_server

if TYPE_CHECKING:
    from pulumi import Input, Output, Resource
    from pulumi_azure_native.containerservice import (
        GetManagedClusterResult,
        ListManagedClusterUserCredentialsResult,
    )

    from holdfast.components.cluster.aks.kubeconfig import ApiServer

#: Whom nodes pull images as, among the identities that AKS gives a cluster.
_KUBELET: Final = "kubeletidentity"


@dataclass(frozen=True, kw_only=True)
class SeenCluster:
    """A cluster as AKS shows it.

    `uid` is its own for as long as it lives, and no other's of the same name. `issuer` is the URL that its service
    accounts' tokens are issued under, `node_principal_id` the object id of whom its nodes pull images as.
    """

    uid: Output[str]
    issuer: Output[str]
    node_principal_id: Output[str]
    api_server: Output[ApiServer]


def see_cluster(
    resource_group: Input[str], name: Input[str], *, name_to_use: Literal["public"] | None, parent: Resource
) -> SeenCluster:
    """Ask AKS for a cluster by its name, and for the way in.

    Asked for, and not taken from what made it: the provider knows the outputs of a resource that changes no longer until
    it has changed, so that each preview of a change of the cluster would announce the replacement of everything in it.
    And the certificate authority is in no output. `name_to_use` is which of its names the API server is to be called by.
    """
    options = InvokeOutputOptions(parent=parent)
    found = get_managed_cluster_output(resource_group_name=resource_group, resource_name=name, opts=options)
    credentials = list_managed_cluster_user_credentials_output(
        resource_group_name=resource_group, resource_name=name, server_fqdn=name_to_use, opts=options
    )
    return SeenCluster(
        uid=found.apply(lambda cluster: cluster.resource_uid),
        issuer=found.apply(_issuer),
        node_principal_id=found.apply(_node_principal_id),
        api_server=credentials.apply(_api_server),
    )


def _issuer(cluster: GetManagedClusterResult) -> str:
    profile = cluster.oidc_issuer_profile
    if profile is None:
        raise ValueError(f"AKS shows no OpenID Connect issuer of {cluster.name}")
    return profile.issuer_url


def _node_principal_id(cluster: GetManagedClusterResult) -> str:
    identity = (cluster.identity_profile or {}).get(_KUBELET)
    if identity is None or identity.object_id is None:
        raise ValueError(f"AKS shows no identity of the nodes of {cluster.name}")
    return identity.object_id


def _api_server(found: ListManagedClusterUserCredentialsResult) -> ApiServer:
    if not found.kubeconfigs:
        raise ValueError("AKS hands out no credentials: the role to list them may be missing")
    return api_server(found.kubeconfigs[0].value)
