"""S3 buckets with their settings, pull through caches of ECR, KMS keys and log groups, and lookups of the latter two."""

import uuid
from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.aws.names import ACCOUNT, PARTITION, place
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Invoke, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.relations import kept_by, needs
from pulumi_holdfast.rehearsal.errors import RehearsalError

_KEY: Final = "aws:kms/key:Key"
_LOG_GROUP: Final = "aws:cloudwatch/logGroup:LogGroup"
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
_needs_bucket: Final = needs(
    "bucket", _BUCKET, "NoSuchBucket: The specified bucket does not exist", by="bucket"
)


def _key_id(request: ResourceRequest) -> str:
    return str(uuid.UUID(request.digest[:32]))


RESOURCES: Mapping[str, Rules] = {
    _KEY: Rules(
        identify=_key_id,
        computed={
            "arn": lambda request: f"arn:{PARTITION}:kms:{place(request)}:{ACCOUNT}:key/{_key_id(request)}",
            "keyId": _key_id,
        },
    ),
    "aws:ecr/pullThroughCacheRule:PullThroughCacheRule": Rules(
        name_property="ecrRepositoryPrefix",
        identify=lambda request: str(request.inputs.get("ecrRepositoryPrefix")),
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
        refuse_delete=(
            kept_by(
                "deleting S3 Bucket ({id}): BucketNotEmpty: The bucket you tried to delete is not empty. "
                "You must delete all versions in the bucket.",
                (_OBJECT, "bucket"),
                unless="forceDestroy",
            ),
        ),
    ),
    _OBJECT: Rules(name_property="", refuse_create=(_needs_bucket,)),
    **dict.fromkeys(
        _SETTINGS,
        Rules(
            name_property="",
            identify=lambda request: str(request.inputs.get("bucket")),
            overwrites=True,
            refuse_create=(_needs_bucket,),
        ),
    ),
}


def _get_key(call: Call) -> Json:
    """A key by its ARN or id; a deleted one is not simulated."""
    wanted = call.arguments.get("keyId")
    for one in call.inventory.of_type(_KEY):
        if wanted in (one.id, one.outputs.get("arn")):
            shown = {"description": "", **one.outputs, "id": one.id}
            return {**shown, "keyState": "Enabled", "enabled": True}
    raise RehearsalError(f"reading KMS Key ({wanted}): NotFoundException: Key '{wanted}' does not exist")


def _get_resources(call: Call) -> Json:
    """KMS keys by their tags; other types are not simulated."""
    types = call.arguments.get("resourceTypeFilters")
    if types != ["kms:key"]:
        raise RehearsalError(f"resources of the types {types} are not simulated by their tags")
    filters = [mapping(one) for one in sequence(call.arguments.get("tagFilters"))]
    found: list[Json] = [
        {"resourceArn": one.outputs.get("arn"), "tags": tags, "complianceDetails": []}
        for one in call.inventory.of_type(_KEY)
        for tags in (mapping(one.outputs.get("tagsAll")),)
        if all(tags.get(str(each.get("key"))) in sequence(each.get("values")) for each in filters)
    ]
    return {**call.arguments, "id": "resources", "resourceTagMappingLists": found}


def _get_log_groups(call: Call) -> Json:
    prefix = str(call.arguments.get("logGroupNamePrefix") or "")
    names = sorted(str(one.outputs.get("name")) for one in call.inventory.of_type(_LOG_GROUP))
    found = [name for name in names if name.startswith(prefix)]
    return {**call.arguments, "id": "log-groups", "arns": [], "logGroupNames": found}


INVOKES: Mapping[str, Invoke] = {
    "aws:cloudwatch/getLogGroups:getLogGroups": _get_log_groups,
    "aws:kms/getKey:getKey": _get_key,
    "aws:resourcegroupstaggingapi/getResources:getResources": _get_resources,
}
