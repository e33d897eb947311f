"""AWS, put together."""

from collections.abc import Mapping

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.aws import ec2, eks, iam, kms, messaging, pod_identity, s3
from holdfast.simulator.clouds.aws.api_server import private_endpoints, refuse_connection
from holdfast.simulator.clouds.aws.invokes import INVOKES
from holdfast.simulator.clouds.aws.names import arn, identify, place, text
from holdfast.simulator.clouds.aws.node_groups import NODE_GROUP, machines_of
from holdfast.simulator.clouds.catalogue import Catalogue, Making, Messages


def _all_tags(making: Making) -> JsonValue:
    """A resource's tags over the default ones of its provider."""
    defaults = _object(making.configuration, "defaultTags")
    return {**_object(defaults, "tags"), **_object(making.inputs, "tags")}


def _object(values: Json, name: str) -> Json:
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}


CATALOGUE = Catalogue(
    resources={
        **ec2.RESOURCES,
        **eks.RESOURCES,
        **iam.RESOURCES,
        **kms.RESOURCES,
        **messaging.RESOURCES,
        **pod_identity.RESOURCES,
        **s3.RESOURCES,
    },
    invokes={**INVOKES, **ec2.INVOKES, **iam.INVOKES},
    common={
        "arn": arn,
        "region": place,
        "tagsAll": _all_tags,
    },
    name_properties=("name", "bucket", "nodeGroupName"),
    scopes=frozenset({"clusterName", "role", "user", "group", "vpcId", "eventBusName", "rule"}),
    identify=identify,
    text=text,
    fleets={NODE_GROUP: machines_of},
    refuse_connection=refuse_connection,
    remarks=private_endpoints,
    messages=Messages(
        taken="ResourceAlreadyExistsException: {type} {name} already exists",
        missing="ResourceNotFoundException: {type} {id} does not exist",
        throttled="ThrottlingException: Rate exceeded",
    ),
)
