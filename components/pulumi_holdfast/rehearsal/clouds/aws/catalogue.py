"""The AWS catalogue: all resource rules and functions."""

from collections.abc import Mapping

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.clouds.aws import (
    access,
    addons,
    cluster,
    iam,
    network,
    node_pools,
    offerings,
    storage,
)
from pulumi_holdfast.rehearsal.clouds.aws.api_server import CALLER, private_endpoints, refuse_connection
from pulumi_holdfast.rehearsal.clouds.aws.names import (
    ACCOUNT,
    PARTITION,
    arn,
    identify,
    place,
    placeholder,
    region,
)
from pulumi_holdfast.rehearsal.clouds.aws.node_pools import NODE_GROUP, machines_of
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Catalogue, Invoke, Messages, ResourceRequest


def _caller_identity(_: Call) -> Json:
    return {"accountId": ACCOUNT, "arn": CALLER, "id": ACCOUNT, "userId": "AIDAREHEARSAL0000001"}


def _region(call: Call) -> Json:
    name = region(call.arguments, call.configuration)
    return {
        "id": name,
        "name": name,
        "region": name,
        "description": name,
        "endpoint": f"ec2.{name}.amazonaws.com",
    }


def _partition(_: Call) -> Json:
    return {
        "id": PARTITION,
        "partition": PARTITION,
        "dnsSuffix": "amazonaws.com",
        "reverseDnsPrefix": "com.amazonaws",
    }


INVOKES: Mapping[str, Invoke] = {
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
}


def _all_tags(request: ResourceRequest) -> JsonValue:
    """The resource's tags, over the default tags of the provider."""
    defaults = mapping(request.configuration.get("defaultTags"))
    return {**mapping(defaults.get("tags")), **mapping(request.inputs.get("tags"))}


CATALOGUE = Catalogue(
    resources={
        **node_pools.LAUNCH_TEMPLATES,
        **network.RESOURCES,
        **access.ACCESS,
        **addons.RESOURCES,
        **cluster.RESOURCES,
        **node_pools.RESOURCES,
        **iam.RESOURCES,
        **access.POD_IDENTITY,
        **storage.RESOURCES,
    },
    invokes={
        **INVOKES,
        **addons.INVOKES,
        **cluster.INVOKES,
        **offerings.INVOKES,
        **iam.INVOKES,
        **network.INVOKES,
        **storage.INVOKES,
    },
    common={"arn": arn, "region": place, "tagsAll": _all_tags},
    name_properties=("name", "bucket", "nodeGroupName"),
    scopes=frozenset({"clusterName", "role", "user", "group", "vpcId", "eventBusName", "rule"}),
    identify=identify,
    text=placeholder,
    fleets={NODE_GROUP: machines_of},
    refuse_connection=refuse_connection,
    remarks=private_endpoints,
    messages=Messages(
        taken="ResourceAlreadyExistsException: {type} {name} already exists",
        missing="ResourceNotFoundException: {type} {id} does not exist",
    ),
)
