"""S3 buckets with their settings, pull through caches of ECR, KMS keys and log groups, and lookups of the latter two."""

import uuid
from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.aws.names import ACCOUNT, PARTITION, place
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Deletion, Invoke, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.state import Inventory
from pulumi_holdfast.rehearsal.errors import RehearsalError


def _identify(request: ResourceRequest) -> str:
    return str(uuid.UUID(request.digest[:32]))


def _arn(request: ResourceRequest) -> str:
    return f"arn:{PARTITION}:kms:{place(request)}:{ACCOUNT}:key/{_identify(request)}"


_KEY: Final = "aws:kms/key:Key"

KEYS: Mapping[str, Rules] = {_KEY: Rules(identify=_identify, computed={"arn": _arn, "keyId": _identify})}


def _get_key(call: Call) -> Json:
    """A key by its ARN or id; a deleted one is not simulated."""
    wanted = call.arguments.get("keyId")
    for one in call.inventory.of_type(_KEY):
        if wanted in (one.id, one.outputs.get("arn")):
            description = one.inputs.get("description") or ""
            return {
                **one.outputs,
                "id": one.id,
                "description": description,
                "keyState": "Enabled",
                "enabled": True,
            }
    raise RehearsalError(f"reading KMS Key ({wanted}): NotFoundException: Key '{wanted}' does not exist")


def _get_resources(call: Call) -> Json:
    """KMS keys by their tags; other types are not simulated."""
    types = call.arguments.get("resourceTypeFilters")
    if types != ["kms:key"]:
        raise RehearsalError(f"resources of the types {types} are not simulated by their tags")
    filters = [mapping(one) for one in sequence(call.arguments.get("tagFilters"))]
    found = [
        one
        for one in call.inventory.of_type(_KEY)
        if all(
            mapping(one.outputs.get("tagsAll")).get(str(each.get("key"))) in sequence(each.get("values"))
            for each in filters
        )
    ]
    return {
        **call.arguments,
        "id": "resources",
        "resourceTagMappingLists": [
            {
                "resourceArn": one.outputs.get("arn"),
                "tags": one.outputs.get("tagsAll"),
                "complianceDetails": [],
            }
            for one in found
        ],
    }


_LOG_GROUP: Final = "aws:cloudwatch/logGroup:LogGroup"


def _get_log_groups(call: Call) -> Json:
    prefix = str(call.arguments.get("logGroupNamePrefix") or "")
    names = sorted(str(one.outputs.get("name")) for one in call.inventory.of_type(_LOG_GROUP))
    return {
        **call.arguments,
        "id": "log-groups",
        "arns": [],
        "logGroupNames": [name for name in names if name.startswith(prefix)],
    }


INVOKES: Mapping[str, Invoke] = {
    "aws:cloudwatch/getLogGroups:getLogGroups": _get_log_groups,
    "aws:kms/getKey:getKey": _get_key,
    "aws:resourcegroupstaggingapi/getResources:getResources": _get_resources,
}


_BUCKET: Final = "aws:s3/bucket:Bucket"
_OBJECT: Final = "aws:s3/bucketObjectv2:BucketObjectv2"
# The settings that a bucket has once.
_SETTINGS: Final = (
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    "aws:s3/bucketPolicy:BucketPolicy",
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "aws:s3/bucketVersioning:BucketVersioning",
)


def _whose(request: ResourceRequest) -> str:
    return str(request.inputs.get("bucket"))


def _no_bucket(request: ResourceRequest) -> str | None:
    name = request.inputs.get("bucket")
    if any(one.outputs.get("bucket") == name for one in request.inventory.of_type(_BUCKET)):
        return None
    return "NoSuchBucket: The specified bucket does not exist"


def _not_empty(deletion: Deletion) -> str | None:
    """A bucket with objects is deleted only with `forceDestroy`."""
    bucket = deletion.target
    if bucket.inputs.get("forceDestroy") is True or not _holds_objects(deletion.inventory, bucket.id):
        return None
    return (
        f"deleting S3 Bucket ({bucket.id}): BucketNotEmpty: The bucket you tried to delete is not empty. "
        "You must delete all versions in the bucket."
    )


def _holds_objects(inventory: Inventory, bucket: JsonValue) -> bool:
    return any(one.inputs.get("bucket") == bucket for one in inventory.of_type(_OBJECT))


_SETTING: Final = Rules(name_property="", identify=_whose, overwrites=True, refuse_create=(_no_bucket,))

_CACHE_RULE: Final = "aws:ecr/pullThroughCacheRule:PullThroughCacheRule"


def _prefix(request: ResourceRequest) -> str:
    return str(request.inputs.get("ecrRepositoryPrefix"))


RESOURCES: Mapping[str, Rules] = {
    _CACHE_RULE: Rules(
        name_property="ecrRepositoryPrefix",
        identify=_prefix,
        computed={"registryId": lambda _: ACCOUNT},
        taken="PullThroughCacheRuleAlreadyExistsException: A pull through cache rule with the prefix {name} already exists",
    ),
    _BUCKET: Rules(
        longest_name=63,
        taken="BucketAlreadyExists: The requested bucket name is not available: {name}",
        computed={
            "bucketDomainName": lambda request: f"{request.name}.s3.amazonaws.com",
            "bucketRegionalDomainName": lambda request: f"{request.name}.s3.{place(request)}.amazonaws.com",
            "bucketRegion": place,
        },
        refuse_delete=(_not_empty,),
    ),
    _OBJECT: Rules(name_property="", refuse_create=(_no_bucket,)),
    **dict.fromkeys(_SETTINGS, _SETTING),
}
