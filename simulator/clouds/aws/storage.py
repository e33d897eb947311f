"""S3: what AWS adds and refuses."""

import uuid
from collections.abc import Mapping
from typing import Final

from holdfast.scheduling.json import JsonValue
from holdfast.simulator.clouds.aws.names import ACCOUNT, PARTITION, place
from holdfast.simulator.clouds.catalogue import Making, Removal, Rules
from holdfast.simulator.clouds.state import Inventory


def _identify(making: Making) -> str:
    return str(uuid.UUID(making.digest[:32]))


def _arn(making: Making) -> str:
    return f"arn:{PARTITION}:kms:{place(making)}:{ACCOUNT}:key/{_identify(making)}"


KEYS: Mapping[str, Rules] = {
    "aws:kms/key:Key": Rules(identify=_identify, computed={"arn": _arn, "keyId": _identify}),
}


_BUCKET: Final = "aws:s3/bucket:Bucket"
_OBJECTS: Final = ("aws:s3/bucketObjectv2:BucketObjectv2", "aws:s3/bucketObject:BucketObject")
# What a bucket has one of.
_SETTINGS: Final = (
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    "aws:s3/bucketPolicy:BucketPolicy",
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "aws:s3/bucketVersioning:BucketVersioning",
)


def _whose(making: Making) -> str:
    return str(making.inputs.get("bucket"))


def _no_bucket(making: Making) -> str | None:
    name = making.inputs.get("bucket")
    if any(one.outputs.get("bucket") == name for one in making.inventory.of_type(_BUCKET)):
        return None
    return "NoSuchBucket: The specified bucket does not exist"


def _not_empty(removal: Removal) -> str | None:
    """A bucket goes with what is in it only if it was told so before."""
    bucket = removal.target
    if bucket.inputs.get("forceDestroy") is True or not _holds_objects(removal.inventory, bucket.id):
        return None
    return (
        f"deleting S3 Bucket ({bucket.id}): BucketNotEmpty: The bucket you tried to delete is not empty. "
        "You must delete all versions in the bucket."
    )


def _holds_objects(inventory: Inventory, bucket: JsonValue) -> bool:
    return any(one.inputs.get("bucket") == bucket for token in _OBJECTS for one in inventory.of_type(token))


_SETTING: Final = Rules(
    name_property="",
    identify=_whose,
    immutable=frozenset({"bucket"}),
    overwrites=True,
    refuse_create=(_no_bucket,),
)

RESOURCES: Mapping[str, Rules] = {
    _BUCKET: Rules(
        longest_name=63,
        taken="BucketAlreadyExists: The requested bucket name is not available: {name}",
        computed={
            "bucketDomainName": lambda making: f"{making.name}.s3.amazonaws.com",
            "bucketRegionalDomainName": lambda making: f"{making.name}.s3.{place(making)}.amazonaws.com",
            "bucketRegion": place,
        },
        refuse_delete=(_not_empty,),
    ),
    **dict.fromkeys(_OBJECTS, Rules(name_property="", refuse_create=(_no_bucket,))),
    **dict.fromkeys(_SETTINGS, _SETTING),
}
