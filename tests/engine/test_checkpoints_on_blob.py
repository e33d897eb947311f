"""Checkpoints in Blob Storage on the real engine: what a stack deletes and what it retains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
import pytest

from holdfast.components.azure_resource_group import StackResourceGroup, StackResourceGroupArgs
from holdfast.components.checkpoints.blob import (
    CheckpointAccess,
    CheckpointAccessArgs,
    CheckpointBucket,
    CheckpointBucketArgs,
)
from holdfast.components.iam.azure import STORAGE_BLOB_DATA_CONTRIBUTOR
from holdfast.simulator.clouds.azure.names import SUBSCRIPTION
from holdfast.simulator.pulumi import EngineFailure
from tests.support.clusters.cloud_program import CloudProgram

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.engine

_ACCOUNT = "azure-native:storage:StorageAccount"
_ASSIGNMENT = "azure-native:authorization:RoleAssignment"
_CONTAINER = "azure-native:storage:BlobContainer"
_CREDENTIAL = "azure-native:managedidentity:FederatedIdentityCredential"
_GROUP = "azure-native:resources:ResourceGroup"
_IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
_POLICY = "azure-native:storage:ManagementPolicy"
_SERVICE = "azure-native:storage:BlobServiceProperties"

_ISSUER = "https://westeurope.oic.prod-aks.azure.com/tenant/cluster/"
_KEPT = {_ACCOUNT, _CONTAINER, _GROUP, _POLICY, _SERVICE}


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    """A stack in an empty subscription."""
    return CloudProgram(
        root=tmp_path, packages=("azure-native",), config={"azure-native:location": "westeurope"}
    )


def checkpoints(
    *,
    protected: bool,
    namespaces: Sequence[str] = ("vision", "tabular"),
    location: str = "westeurope",
    issuer: str = _ISSUER,
) -> None:
    """Register a store, and the way to it of each namespace."""
    group = StackResourceGroup(
        "group",
        StackResourceGroupArgs(group_name="holdfast-azure-dev", location="westeurope", protected=protected),
    )
    store = CheckpointBucket(
        "checkpoints",
        CheckpointBucketArgs(
            location="westeurope", namespaces=namespaces, retain_days=30, protected=protected
        ),
    )
    for namespace in namespaces:
        access = CheckpointAccess(
            f"access-{namespace}",
            CheckpointAccessArgs(
                resource_group=group.group_name,
                location=location,
                subscription_id=SUBSCRIPTION,
                oidc_issuer=issuer,
                namespace=namespace,
                container_id=store.container_id(namespace),
            ),
        )
        pulumi.export(f"{namespace}-uri", store.uri(namespace))
        pulumi.export(f"{namespace}-client", access.client_id)


def for_production() -> None:
    checkpoints(protected=True)


def for_development() -> None:
    checkpoints(protected=False)


def unprotected() -> None:
    """Register the same with the protection lifted, as `pulumi state unprotect --all` lifts it."""

    def lift(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
        lifted = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(protect=False))
        return pulumi.ResourceTransformationResult(props=args.props, opts=lifted)

    pulumi.runtime.register_stack_transformation(lift)
    for_production()


def kinds_left(stack: CloudProgram) -> set[str]:
    """The types of what there is."""
    return {one.type for one in stack.cloud("azure-native").read().all()}


def test_a_development_stack_is_destroyed_with_its_checkpoints(
    stack: CloudProgram,
) -> None:
    made = stack.up(for_development)
    (account,) = stack.objects(_ACCOUNT)
    name = account.inputs["accountName"]
    assert made.outputs["vision-uri"] == f"abfss://vision@{name}.dfs.core.windows.net", (
        "the output names the path of the namespace"
    )
    assert stack.up(for_development).changed == 0, "a second run has nothing to do"
    stack.refresh(for_development)
    assert stack.up(for_development).changed == 0, "nor after a refresh"
    stack.destroy()
    assert kinds_left(stack) == set(), "of the stack nothing is left"


def test_each_namespace_gets_access_to_its_container_by_its_identity(stack: CloudProgram) -> None:
    made = stack.up(for_development)
    identities = {one.outputs["principalId"]: one for one in stack.objects(_IDENTITY)}
    given = {str(one.inputs["scope"]).rpartition("/")[2]: one for one in stack.objects(_ASSIGNMENT)}
    assert set(given) == {"vision", "tabular"}, "the containers, and not the account they are in"
    for namespace, one in given.items():
        role = str(one.inputs["roleDefinitionId"]).rpartition("/")[2]
        assert role == STORAGE_BLOB_DATA_CONTRIBUTOR, "to read and write, and not to say who else may"
        identity = identities[one.inputs["principalId"]]
        assert identity.outputs["clientId"] == made.outputs[f"{namespace}-client"], (
            "the account is annotated with its identity"
        )
        (subject,) = [
            credential.inputs["subject"]
            for credential in stack.objects(_CREDENTIAL)
            if credential.inputs["resourceName"] == identity.inputs["resourceName"]
        ]
        assert subject == f"system:serviceaccount:{namespace}:trainer", "which only they are"


def test_a_protected_stack_retains_its_store_after_an_unprotected_destroy(
    stack: CloudProgram,
) -> None:
    stack.up(for_production)
    before = stack.objects(_ACCOUNT)
    with pytest.raises(EngineFailure, match="protected"):
        stack.destroy()
    assert stack.objects(_ACCOUNT) == before, "a destroy that was not meant deletes nothing"

    assert "delete" not in stack.up(unprotected).changes, "lifting the protection deletes nothing yet"
    stack.destroy()
    assert kinds_left(stack) == _KEPT, "the ways to it are gone; what keeps and guards checkpoints is there"
    assert stack.objects(_ACCOUNT) == before, "and it is the store that it was"
    (group,) = stack.objects(_GROUP)
    assert group.inputs["resourceGroupName"] != "holdfast-azure-dev", (
        "the stack's own group is gone, and with it all that was in it: the store was not"
    )


def test_a_new_stack_does_not_conflict_with_a_retained_store(stack: CloudProgram) -> None:
    stack.up(for_production)
    stack.up(unprotected)
    stack.destroy()
    stack.up(for_production)
    assert len(stack.objects(_ACCOUNT)) == 2, (
        "the new stack made one of its own, and the old one is there still"
    )


def test_a_recreated_identity_gets_its_container_again(
    stack: CloudProgram,
) -> None:
    stack.up(for_development)
    before = {one.id for one in stack.objects(_ASSIGNMENT)}
    moved = stack.up(lambda: checkpoints(protected=False, location="northeurope"))
    assert "replace" in moved.changes, "an identity cannot be moved"
    after = {one.id for one in stack.objects(_ASSIGNMENT)}
    assert len(after) == 2, "one for each namespace"
    assert not before & after, "Azure changes the principal of none that is there: they are others"


def test_another_cluster_is_trusted_in_place(stack: CloudProgram) -> None:
    stack.up(for_development)
    identities = {one.id for one in stack.objects(_IDENTITY)}
    changed = stack.up(lambda: checkpoints(protected=False, issuer=f"{_ISSUER}new/"))
    assert set(changed.changes) <= {"same", "update"}, "the credential is all that knows of the cluster"
    assert {one.id for one in stack.objects(_IDENTITY)} == identities, "pods keep their identity"


def test_a_namespace_removed_from_a_protected_stack_keeps_its_checkpoints(
    stack: CloudProgram,
) -> None:
    stack.up(for_production)
    with pytest.raises(EngineFailure, match="protected"):
        stack.up(lambda: checkpoints(protected=True, namespaces=["tabular"]))
    assert len(stack.objects(_CONTAINER)) == 2, "protection must be lifted first"
