"""AWS functions a program calls while it runs."""

from collections.abc import Mapping

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.aws.names import ACCOUNT, PARTITION, region
from holdfast.simulator.clouds.catalogue import Call, Invoke


def _caller_identity(_: Call) -> Json:
    arn = f"arn:{PARTITION}:iam::{ACCOUNT}:user/rehearsal"
    return {"accountId": ACCOUNT, "arn": arn, "id": ACCOUNT, "userId": "AIDAREHEARSAL0000001"}


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
