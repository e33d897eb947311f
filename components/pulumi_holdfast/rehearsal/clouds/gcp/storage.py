"""Cloud Storage buckets, managed folders and their IAM members."""

from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Deletion, Invoke, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.gcp.iam import grant
from pulumi_holdfast.rehearsal.clouds.gcp.names import (
    PROJECT_NUMBER,
    asked_project,
    may_encrypt,
    storage_agent,
)
from pulumi_holdfast.rehearsal.clouds.relations import needs, needs_at
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.errors import RehearsalError

_BUCKET: Final = "gcp:storage/bucket:Bucket"
_FOLDER: Final = "gcp:storage/managedFolder:ManagedFolder"
_OBJECT: Final = "gcp:storage/bucketObject:BucketObject"

# Seven days.
_SOFT_DELETE_SECONDS: Final = 604800


def _soft_delete(request: ResourceRequest) -> Json:
    given = mapping(request.inputs.get("softDeletePolicy")).get("retentionDurationSeconds")
    return {
        "effectiveTime": "2026-01-01T00:00:00Z",
        "retentionDurationSeconds": _SOFT_DELETE_SECONDS if given is None else given,
    }


def _key_not_granted(request: ResourceRequest) -> str | None:
    key = mapping(request.inputs.get("encryption")).get("defaultKmsKeyName")
    if not key or may_encrypt(request, key, storage_agent()):
        return None
    return (
        "googleapi: Error 403: Permission denied on Cloud KMS key. Please ensure that your Cloud Storage service "
        "account has been authorized to use this key., forbidden"
    )


def _not_empty(deletion: Deletion) -> str | None:
    """A bucket with objects is deleted only with `forceDestroy`."""
    bucket = deletion.target
    if bucket.inputs.get("forceDestroy") is True or not _objects_under(deletion.inventory, bucket.id, ""):
        return None
    return f"Error trying to delete bucket {bucket.id} without `force_destroy` set to true"


def _objects_under(inventory: Inventory, bucket: JsonValue, prefix: str) -> list[CloudObject]:
    return [
        one
        for one in inventory.of_type(_OBJECT)
        if one.inputs.get("bucket") == bucket and str(one.outputs.get("name")).startswith(prefix)
    ]


def _folder_not_empty(deletion: Deletion) -> str | None:
    folder = deletion.target
    if folder.inputs.get("forceDestroy") is True:
        return None
    bucket, name = folder.inputs.get("bucket"), str(folder.inputs.get("name"))
    nested = [
        one
        for one in deletion.inventory.of_type(_FOLDER)
        if one.inputs.get("bucket") == bucket
        and one.id != folder.id
        and str(one.inputs.get("name")).startswith(name)
    ]
    if not nested and not _objects_under(deletion.inventory, bucket, name):
        return None
    return "googleapi: Error 409: The managed folder you tried to delete is not empty., conflict"


def _project_service_account(call: Call) -> Json:
    email = storage_agent()
    return {
        **call.arguments,
        "id": email,
        "emailAddress": email,
        "member": f"serviceAccount:{email}",
        "project": asked_project(call),
    }


def _buckets(call: Call) -> Json:
    prefix = str(call.arguments.get("prefix") or "")
    named = [one for one in call.inventory.of_type(_BUCKET) if one.id.startswith(prefix)]
    shown = ("location", "name", "selfLink", "storageClass")
    listed: list[JsonValue] = [
        {
            **{key: one.outputs.get(key) or "" for key in shown},
            "labels": one.outputs.get("effectiveLabels") or {},
        }
        for one in named
    ]
    return {**call.arguments, "id": "buckets", "buckets": listed}


def _bucket(call: Call) -> Json:
    name = str(call.arguments.get("name"))
    found = call.inventory.find(_BUCKET, name)
    if found is None:
        raise RehearsalError(f"b/{name} not found")
    namespace = found.inputs.get("hierarchicalNamespace")
    return {**found.outputs, "id": name, "hierarchicalNamespaces": [namespace] if namespace else []}


_no_bucket: Final = needs(
    "bucket", _BUCKET, "googleapi: Error 404: The specified bucket does not exist., notFound"
)
_no_folder: Final = needs_at(
    _FOLDER,
    lambda request: f"{request.inputs.get('bucket')}/{request.inputs.get('managedFolder')}",
    "googleapi: Error 404: The specified managed folder does not exist., notFound",
)

RESOURCES: Mapping[str, Rules] = {
    _BUCKET: Rules(
        unique_within=(),
        longest_name=63,
        identify=lambda request: request.name,
        immutable=frozenset({"location", "project", "hierarchicalNamespace", "enableObjectRetention"}),
        computed={
            "projectNumber": lambda _: int(PROJECT_NUMBER),
            "publicAccessPrevention": lambda request: (
                request.inputs.get("publicAccessPrevention") or "inherited"
            ),
            "selfLink": lambda request: f"https://www.googleapis.com/storage/v1/b/{request.name}",
            "softDeletePolicy": _soft_delete,
            "uniformBucketLevelAccess": lambda request: (
                request.inputs.get("uniformBucketLevelAccess") or False
            ),
            "url": lambda request: f"gs://{request.name}",
        },
        taken=(
            "googleapi: Error 409: The requested bucket name is not available. The bucket namespace is shared by all "
            "users of the system. Please select a different name and try again., conflict"
        ),
        refuse_create=(_key_not_granted,),
        refuse_update=(_key_not_granted,),
        refuse_delete=(_not_empty,),
    ),
    _OBJECT: Rules(unique_within=("bucket",), refuse_create=(_no_bucket,)),
    _FOLDER: Rules(
        unique_within=("bucket",),
        identify=lambda request: f"{request.inputs.get('bucket')}/{request.name}",
        taken="Error creating ManagedFolder: googleapi: Error 409: The managed folder already exists., conflict",
        refuse_create=(_no_bucket,),
        refuse_delete=(_folder_not_empty,),
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": grant(
        lambda request: f"b/{request.inputs.get('bucket')}",
        of="storage bucket",
        where=frozenset({"bucket"}),
        needs=(_no_bucket,),
    ),
    "gcp:storage/managedFolderIamMember:ManagedFolderIamMember": grant(
        lambda request: (
            f"b/{request.inputs.get('bucket')}/managedFolders/{request.inputs.get('managedFolder')}"
        ),
        of="storage managedfolder",
        where=frozenset({"bucket", "managedFolder"}),
        needs=(_no_folder,),
    ),
}

INVOKES: Mapping[str, Invoke] = {
    "gcp:storage/getBucket:getBucket": _bucket,
    "gcp:storage/getBuckets:getBuckets": _buckets,
    "gcp:storage/getProjectServiceAccount:getProjectServiceAccount": _project_service_account,
}
