"""Cloud Storage: what it adds and refuses."""

from collections.abc import Mapping
from typing import Final

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.catalogue import Call, Invoke, Making, Removal, Rules
from holdfast.simulator.clouds.gcp.iam import grant
from holdfast.simulator.clouds.gcp.names import PROJECT_NUMBER, asked_project, storage_agent
from holdfast.simulator.clouds.state import CloudObject, Inventory

_BUCKET: Final = "gcp:storage/bucket:Bucket"
_FOLDER: Final = "gcp:storage/managedFolder:ManagedFolder"
_KEY_GRANT: Final = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
_OBJECT: Final = "gcp:storage/bucketObject:BucketObject"

_KEY_ROLE: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
# Seven days, which Cloud Storage takes where nothing is said, to ninety; or none.
_SOFT_DELETE_SECONDS: Final = (604800, 7776000)


def _within(values: Json, name: str, member: str) -> JsonValue:
    found = values.get(name)
    return found.get(member) if isinstance(found, Mapping) else None


def _soft_delete(making: Making) -> Json:
    given = _within(making.inputs, "softDeletePolicy", "retentionDurationSeconds")
    return {
        "effectiveTime": "2026-01-01T00:00:00Z",
        "retentionDurationSeconds": _SOFT_DELETE_SECONDS[0] if given is None else given,
    }


def _key_not_granted(making: Making) -> str | None:
    key = _within(making.inputs, "encryption", "defaultKmsKeyName")
    if not key:
        return None
    wanted = {"cryptoKeyId": key, "role": _KEY_ROLE, "member": f"serviceAccount:{storage_agent()}"}
    if any(wanted.items() <= one.inputs.items() for one in making.inventory.of_type(_KEY_GRANT)):
        return None
    return (
        "googleapi: Error 403: Permission denied on Cloud KMS key. Please ensure that your Cloud Storage service "
        "account has been authorized to use this key., forbidden"
    )


def _not_empty(removal: Removal) -> str | None:
    """A bucket goes with what is in it only if it was told so before."""
    bucket = removal.target
    if bucket.inputs.get("forceDestroy") is True or not _objects_under(removal.inventory, bucket.id, ""):
        return None
    return f"Error trying to delete bucket {bucket.id} without `force_destroy` set to true"


def _objects_under(inventory: Inventory, bucket: JsonValue, prefix: str) -> list[CloudObject]:
    return [
        one
        for one in inventory.of_type(_OBJECT)
        if one.inputs.get("bucket") == bucket and str(one.outputs.get("name")).startswith(prefix)
    ]


def _no_bucket(making: Making) -> str | None:
    bucket = making.inventory.find(_BUCKET, str(making.inputs.get("bucket")))
    if bucket is None:
        return "googleapi: Error 404: The specified bucket does not exist., notFound"
    return None


def _folder_not_empty(removal: Removal) -> str | None:
    folder = removal.target
    if folder.inputs.get("forceDestroy") is True:
        return None
    bucket, name = folder.inputs.get("bucket"), str(folder.inputs.get("name"))
    nested = [
        one
        for one in removal.inventory.of_type(_FOLDER)
        if one.inputs.get("bucket") == bucket
        and one.id != folder.id
        and str(one.inputs.get("name")).startswith(name)
    ]
    if not nested and not _objects_under(removal.inventory, bucket, name):
        return None
    return "googleapi: Error 409: The managed folder you tried to delete is not empty., conflict"


def _folder_id(making: Making) -> str:
    return f"{making.inputs.get('bucket')}/{making.name}"


def _no_folder(making: Making) -> str | None:
    where = f"{making.inputs.get('bucket')}/{making.inputs.get('managedFolder')}"
    if making.inventory.find(_FOLDER, where) is not None:
        return None
    return "googleapi: Error 404: The specified managed folder does not exist., notFound"


def _project_service_account(call: Call) -> Json:
    email = storage_agent()
    return {
        **call.arguments,
        "id": email,
        "emailAddress": email,
        "member": f"serviceAccount:{email}",
        "project": asked_project(call),
    }


RESOURCES: Mapping[str, Rules] = {
    _BUCKET: Rules(
        unique_within=(),
        longest_name=63,
        identify=lambda making: making.name,
        immutable=frozenset({"location", "project", "hierarchicalNamespace", "enableObjectRetention"}),
        computed={
            "projectNumber": lambda _: int(PROJECT_NUMBER),
            "publicAccessPrevention": lambda making: (
                making.inputs.get("publicAccessPrevention") or "inherited"
            ),
            "selfLink": lambda making: f"https://www.googleapis.com/storage/v1/b/{making.name}",
            "softDeletePolicy": _soft_delete,
            "uniformBucketLevelAccess": lambda making: making.inputs.get("uniformBucketLevelAccess") or False,
            "url": lambda making: f"gs://{making.name}",
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
        identify=_folder_id,
        taken="Error creating ManagedFolder: googleapi: Error 409: The managed folder already exists., conflict",
        refuse_create=(_no_bucket,),
        refuse_delete=(_folder_not_empty,),
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": grant(
        lambda making: f"b/{making.inputs.get('bucket')}",
        of="storage bucket",
        where=frozenset({"bucket"}),
        needs=(_no_bucket,),
    ),
    "gcp:storage/managedFolderIamMember:ManagedFolderIamMember": grant(
        lambda making: f"b/{making.inputs.get('bucket')}/managedFolders/{making.inputs.get('managedFolder')}",
        of="storage managedfolder",
        where=frozenset({"bucket", "managedFolder"}),
        needs=(_no_folder,),
    ),
}

INVOKES: Mapping[str, Invoke] = {
    "gcp:storage/getProjectServiceAccount:getProjectServiceAccount": _project_service_account,
}
