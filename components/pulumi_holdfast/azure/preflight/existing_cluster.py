"""Queries the existing AKS cluster that a stack uses, and checks what the stack needs of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi_azure_native.containerservice import get_managed_cluster, list_managed_cluster_user_credentials

from pulumi_holdfast.azure.config.sections import AzureExistingNetwork
from pulumi_holdfast.azure.control_plane.access import ApiServer, api_server
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.preflight import (
    EXISTING,
    NodeGroup,
    missing_cluster,
    system_node_problems,
    unmet,
    version_problems,
)
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.labels import SYSTEM, SYSTEM_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pulumi
    from pulumi import Input
    from pulumi_azure_native.containerservice.outputs import ManagedClusterAgentPoolProfileResponse

    from pulumi_holdfast.azure.config.sections import AzureExistingCluster, AzurePlatform
    from pulumi_holdfast.config.preflight import CloudQueries


_NO_API_SERVER: Final = ApiServer(url="", certificate_authority="")


@dataclass(frozen=True, kw_only=True)
class ExistingAks:
    """A cluster as AKS has it. `subnet_id` is the subnet of the pools' nodes, empty if AKS manages it.

    `provisions`: it has node auto-provisioning. `entra`: Entra ID authenticates its users. `issuer` is empty without an OpenID
    Connect issuer.
    """

    name: str
    resource_group: str
    exists: bool = True
    location: str = ""
    uid: str = ""
    version: str = ""
    issuer: str = ""
    workload_identity: bool = False
    entra: bool = False
    provisions: bool = False
    subnet_id: Input[str] = ""
    api_server: ApiServer = _NO_API_SERVER
    groups: tuple[NodeGroup, ...] = ()


#: The end of Azure's error codes for an object that does not exist.
_UNKNOWN: Final = "NotFound"


def existing_aks(platform: AzurePlatform, queries: CloudQueries) -> ExistingAks | None:
    """The existing cluster of a stack; None for a stack that creates one. Raises ConfigError if it cannot be read."""
    cluster = platform.existing_cluster
    if cluster is None:
        return None
    return queries.required(
        "containerservice:getManagedCluster and listManagedClusterUserCredentials",
        lambda: _cluster(platform, cluster, queries.options),
    )


def _cluster(
    platform: AzurePlatform, cluster: AzureExistingCluster, options: pulumi.InvokeOptions
) -> ExistingAks:
    group, name = cluster.resource_group, cluster.existing
    try:
        found = get_managed_cluster(resource_group_name=group, resource_name=name, opts=options)
    except Exception as error:
        if _UNKNOWN in str(error):
            return ExistingAks(name=name, resource_group=group, exists=False)
        raise
    credentials = list_managed_cluster_user_credentials(
        # Of a private cluster, clients outside its network can resolve only a public name.
        resource_group_name=group,
        resource_name=name,
        server_fqdn="public" if found.private_fqdn and found.fqdn else None,
        opts=options,
    )
    issuer, security = found.oidc_issuer_profile, found.security_profile
    provisioning = found.node_provisioning_profile
    profiles = found.agent_pool_profiles or []
    return ExistingAks(
        name=name,
        resource_group=group,
        location=found.location,
        uid=found.resource_uid,
        version=found.current_kubernetes_version,
        issuer=(issuer.issuer_url or "") if issuer is not None and issuer.enabled else "",
        workload_identity=bool(
            security and security.workload_identity and security.workload_identity.enabled
        ),
        entra=found.aad_profile is not None,
        provisions=provisioning is not None and provisioning.mode == "Auto",
        subnet_id=_subnet(platform, profiles),
        api_server=api_server(credentials.kubeconfigs[0].value),
        groups=tuple(_group(profile) for profile in profiles),
    )


def _subnet(
    platform: AzurePlatform, profiles: Sequence[ManagedClusterAgentPoolProfileResponse]
) -> Input[str]:
    if isinstance(platform.network, AzureExistingNetwork):
        return platform.network.subnet_id
    return next((profile.vnet_subnet_id for profile in profiles if profile.vnet_subnet_id), "")


def _group(profile: ManagedClusterAgentPoolProfileResponse) -> NodeGroup:
    taints = [taint for taint in profile.node_taints or () if not taint.endswith(":PreferNoSchedule")]
    return NodeGroup(
        name=profile.name,
        labels=profile.node_labels or {},
        taints=[taint.partition("=")[0].partition(":")[0] for taint in taints],
        count=profile.count,
    )


#: The operators run two replicas.
_FEWEST_NODES: Final = 2


def existing_aks_problems(platform: AzurePlatform, cluster: ExistingAks) -> Iterator[Problem]:
    """The requirements of the stack that the cluster does not meet."""
    name, place = cluster.name, f"--resource-group {cluster.resource_group} --name {cluster.name}"
    if not cluster.exists:
        yield missing_cluster(
            name, f"the resource group {cluster.resource_group}", "az aks list --output table"
        )
        return
    yield from version_problems(name, cluster.version)
    if cluster.location.replace(" ", "").lower() != platform.location:
        yield unmet(
            f"{format_value(name)}, a cluster in {cluster.location}",
            f"a cluster in {platform.location}, the stack's location",
            f"Write another cluster, or `azure-native:location: {cluster.location}`.",
        )
    missing = (
        (cluster.issuer, "an OpenID Connect issuer", "--enable-oidc-issuer"),
        (cluster.workload_identity, "workload identity", "--enable-workload-identity"),
        (cluster.entra, "Entra ID authentication", "--enable-aad"),
    )
    for present, what, option in missing:
        if not present:
            yield unmet(
                f"{format_value(name)}, a cluster without {what}",
                f"a cluster with {what}: jobs and kubelogin get their tokens with it",
                f"Run `az aks update {place} {option}`.",
            )
    yield from _scaling(platform, cluster)
    yield from system_node_problems(
        name,
        cluster.groups,
        fewest=_FEWEST_NODES,
        fix=f"Run `az aks nodepool update --resource-group {cluster.resource_group} --cluster-name {name} --name POOL "
        f"--labels {SYSTEM}={SYSTEM_VALUE}` for a pool of on-demand nodes.",
    )
    if not cluster.subnet_id:
        yield Problem(
            field=EXISTING,
            value=f"{format_value(name)}, a cluster whose subnet AKS manages",
            allowed="a cluster in a subnet of its owner, or the id of the subnet in network",
            fix="Write `network: {subnetId: …}` with the subnet of its nodes.",
        )


def _scaling(platform: AzurePlatform, cluster: ExistingAks) -> Iterator[Problem]:
    wants = not platform.has_scale_sets
    if wants == cluster.provisions:
        return
    has, fitting = ("", "nap") if cluster.provisions else ("out", "fixed")
    yield Problem(
        field=f"{PLATFORM}.cluster.scaling",
        value=f"{'nap' if wants else 'fixed'}, but {cluster.name} is with{has} node auto-provisioning",
        allowed=f"{fitting}, which the existing cluster supports",
        fix=f"Write `scaling: {fitting}`, with its kind of pools; or run `az aks update --resource-group "
        f"{cluster.resource_group} --name {cluster.name} --node-provisioning-mode {'Auto' if wants else 'Manual'}`.",
    )
