"""SQS queues, and the EventBridge rules and targets that send events to them."""

from collections.abc import Mapping

from pulumi_holdfast.rehearsal.clouds.aws.names import ACCOUNT, PARTITION, place
from pulumi_holdfast.rehearsal.clouds.catalogue import Deletion, ResourceRequest, Rules

_QUEUE = "aws:sqs/queue:Queue"
_RULE = "aws:cloudwatch/eventRule:EventRule"
_TARGET = "aws:cloudwatch/eventTarget:EventTarget"

_DEFAULT_BUS = "default"


def _queue_url(request: ResourceRequest) -> str:
    return f"https://sqs.{place(request)}.amazonaws.com/{ACCOUNT}/{request.name}"


def _queue_of_policy(request: ResourceRequest) -> str:
    return str(request.inputs.get("queueUrl"))


def _queue_missing(request: ResourceRequest) -> str | None:
    if request.inventory.find(_QUEUE, _queue_of_policy(request)) is None:
        return "AWS.SimpleQueueService.NonExistentQueue: The specified queue does not exist for this wsdl version."
    return None


def _bus(request: ResourceRequest) -> str:
    return str(request.inputs.get("eventBusName") or _DEFAULT_BUS)


def _rule_arn(request: ResourceRequest) -> str:
    """The ARN contains the bus, except the default one."""
    path = request.name if _bus(request) == _DEFAULT_BUS else f"{_bus(request)}/{request.name}"
    return f"arn:{PARTITION}:events:{place(request)}:{ACCOUNT}:rule/{path}"


def _target_id(request: ResourceRequest) -> str:
    return str(request.inputs.get("targetId") or f"terraform-{request.digest[:26]}")


def _identify_target(request: ResourceRequest) -> str:
    rule = request.inputs.get("rule")
    bus = "" if _bus(request) == _DEFAULT_BUS else f"{_bus(request)}-"
    return f"{bus}{rule}-{_target_id(request)}"


def _rule_missing(request: ResourceRequest) -> str | None:
    asked = (request.inputs.get("rule"), _bus(request))
    rules = (
        (rule.outputs.get("name"), rule.inputs.get("eventBusName") or _DEFAULT_BUS)
        for rule in request.inventory.of_type(_RULE)
    )
    if asked in rules:
        return None
    return f"ResourceNotFoundException: Rule {asked[0]} does not exist on EventBus {asked[1]}."


def _targets_remain(deletion: Deletion) -> str | None:
    rule = deletion.target.outputs.get("name")
    if any(target.inputs.get("rule") == rule for target in deletion.inventory.of_type(_TARGET)):
        return "ValidationException: Rule can't be deleted since it has targets."
    return None


RESOURCES: Mapping[str, Rules] = {
    _QUEUE: Rules(longest_name=80, identify=_queue_url, computed={"url": _queue_url}),
    "aws:sqs/queuePolicy:QueuePolicy": Rules(
        identify=_queue_of_policy,
        overwrites=True,
        refuse_create=(_queue_missing,),
        refuse_update=(_queue_missing,),
    ),
    _RULE: Rules(
        longest_name=64, computed={"arn": _rule_arn}, overwrites=True, refuse_delete=(_targets_remain,)
    ),
    _TARGET: Rules(
        identify=_identify_target,
        # The ARN of a target is that of its destination.
        computed={"arn": lambda request: request.inputs.get("arn"), "targetId": _target_id},
        overwrites=True,
        refuse_create=(_rule_missing,),
        refuse_update=(_rule_missing,),
    ),
}
