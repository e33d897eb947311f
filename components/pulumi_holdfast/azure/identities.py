"""Identities on Azure: the training namespaces, whose jobs have access to their own checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pulumi
from pulumi import ComponentResource, Input, ResourceOptions
from pulumi_azure_native.managedidentity import FederatedIdentityCredential, UserAssignedIdentity

from pulumi_holdfast.azure.role_assignments import (
    STORAGE_BLOB_DATA_CONTRIBUTOR,
    STORAGE_BLOB_DATA_READER,
    Assignment,
    AssignmentArgs,
)
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.cluster_services import Identity, make_training_namespace
from pulumi_holdfast.kubernetes.kubernetes_object import tied_to
from pulumi_holdfast.kubernetes.other_clusters import users_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_holdfast.azure.checkpoints import Store
    from pulumi_holdfast.azure.config.sections import AzurePlatform
    from pulumi_holdfast.kubernetes.other_clusters import OtherStacks
    from pulumi_holdfast.kubernetes.storage import MountedVolume, Storage
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary

#: The annotation of a service account that names the identity of its pods.
CLIENT_ID: Final = "azure.workload.identity/client-id"

# The only audience for which Entra ID accepts tokens of pods.
_AUDIENCE: Final = "api://AzureADTokenExchange"


@dataclass(frozen=True, kw_only=True)
class CheckpointAccessArgs:
    """Arguments of `CheckpointAccess`.

    The identity is created in `resource_group` and `location`. `oidc_issuer`, `namespace` and `service_account` identify
    the cluster and its pods. `container_id` is the resource ID of the container, which is in the subscription `subscription_id`.
    """

    resource_group: Input[str]
    location: str
    subscription_id: Input[str]
    oidc_issuer: Input[str]
    namespace: str
    service_account: str = "trainer"
    container_id: Input[str]


class CheckpointAccess(ComponentResource):
    """Lets the pods of one service account use one container (`holdfast:index:CheckpointAccess`).

    Creates a UserAssignedIdentity, its FederatedIdentityCredential for those pods, and the Assignment of a
    role on the container. `client_id`, for the service account's annotation CLIENT_ID, is known once all of
    them exist. The namespace and the service account may be created later. Entra ID needs a few minutes to
    accept a new credential and up to ten for a new assignment; until then it rejects the jobs.

    Each namespace has an identity of its own: an identity has room for 20 credentials, which are written one
    after the other.
    """

    def __init__(self, name: str, args: CheckpointAccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointAccess", name, None, opts)
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
            issuer=args.oidc_issuer,
            subject=f"system:serviceaccount:{args.namespace}:{args.service_account}",
            audiences=[_AUDIENCE],
            opts=ResourceOptions(parent=self),
        )
        assignment = Assignment(
            f"{name}-checkpoints",
            AssignmentArgs(
                subscription_id=args.subscription_id,
                scope=args.container_id,
                role=STORAGE_BLOB_DATA_CONTRIBUTOR,
                principal_id=identity.principal_id,
                # Otherwise Azure looks the principal up in a directory that may not have it for minutes.
                principal_type="ServicePrincipal",
            ),
            opts=ResourceOptions(parent=self),
        )
        self.principal_id = identity.principal_id
        self.client_id = tied_to(identity.client_id, [credential, assignment])
        self.register_outputs({"client_id": self.client_id})


#: The driver of containers. It mounts them with the identity of a pod: the accounts have no keys.
BLOBFUSE: Final = "blob.csi.azure.com"


def _with_identity(volume: MountedVolume, client_id: Input[str]) -> MountedVolume:
    if volume.driver != BLOBFUSE:
        return volume
    attributes = {"clientID": client_id, "mountWithWorkloadIdentityToken": "true"}
    return replace(volume, attributes={**volume.attributes, **attributes})


def make_namespaces(
    platform: AzurePlatform,
    *,
    cluster: str,
    resource_group: Input[str],
    oidc_issuer: Input[str],
    stores: Mapping[str, Store],
    pools: Mapping[str, PoolSummary],
    others: OtherStacks,
    accepted: Mapping[str, Sequence[Input[str]]],
    storage: Storage,
    subscription_id: str,
    after: pulumi.ResourceOptions,
) -> Mapping[str, Input[str]]:
    """Create every training namespace of `cluster`, by its logical name, with access to its store, and return the identities of their jobs by namespace.

    Each depends on the resources in `after` and on its identity. The identities are created in `resource_group`; `oidc_issuer`
    is that of the cluster's service account tokens. `accepted` are the users here of the controllers of other clusters, by the names of
    those clusters, `storage` are the volumes that jobs may mount, in the subscription `subscription_id`.
    """
    identities: dict[str, Input[str]] = {}
    for namespace in platform.namespaces:
        store = stores[namespace.name]
        access = CheckpointAccess(
            naming.checkpoint_access(cluster, namespace.name),
            CheckpointAccessArgs(
                resource_group=resource_group,
                location=platform.location,
                subscription_id=store.subscription_id,
                oidc_issuer=oidc_issuer,
                namespace=namespace.name,
                container_id=store.container_id,
            ),
            opts=after,
        )
        identities[namespace.name] = access.client_id
        reads = [
            Assignment(
                naming.dataset_access(cluster, namespace.name, volume),
                AssignmentArgs(
                    subscription_id=subscription_id,
                    scope=container_id,
                    role=STORAGE_BLOB_DATA_READER,
                    principal_id=access.principal_id,
                    principal_type="ServicePrincipal",
                ),
                opts=after,
            )
            for volume, container_id in storage.buckets.get(namespace.name, {}).items()
        ]
        make_training_namespace(
            namespace,
            cluster=cluster,
            checkpoint_uri=store.uri,
            pools=pools,
            others=others,
            accepted=users_in(namespace.name, platform.accepts_from, accepted),
            identity=Identity(annotations={CLIENT_ID: access.client_id}),
            volumes=[
                _with_identity(each, access.client_id) for each in storage.volumes.get(namespace.name, ())
            ],
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[access, *reads])),
        )
    return identities
