"""Queues and the events they are sent: what AWS adds and refuses."""

from collections.abc import Mapping

from holdfast.simulator.clouds.aws.names import ACCOUNT, PARTITION, place
from holdfast.simulator.clouds.catalogue import Making, Removal, Rules

_QUEUE = "aws:sqs/queue:Queue"
_RULE = "aws:cloudwatch/eventRule:EventRule"
_TARGET = "aws:cloudwatch/eventTarget:EventTarget"

_DEFAULT_BUS = "default"


def _queue_url(making: Making) -> str:
    return f"https://sqs.{place(making)}.amazonaws.com/{ACCOUNT}/{making.name}"


def _queue_of_policy(making: Making) -> str:
    return str(making.inputs.get("queueUrl"))


def _queue_missing(making: Making) -> str | None:
    if making.inventory.find(_QUEUE, _queue_of_policy(making)) is None:
        return "AWS.SimpleQueueService.NonExistentQueue: The specified queue does not exist for this wsdl version."
    return None


def _bus(making: Making) -> str:
    return str(making.inputs.get("eventBusName") or _DEFAULT_BUS)


def _rule_arn(making: Making) -> str:
    """A rule's ARN names its bus, but not the default one."""
    path = making.name if _bus(making) == _DEFAULT_BUS else f"{_bus(making)}/{making.name}"
    return f"arn:{PARTITION}:events:{place(making)}:{ACCOUNT}:rule/{path}"


def _target_id(making: Making) -> str:
    return str(making.inputs.get("targetId") or f"terraform-{making.digest[:26]}")


def _identify_target(making: Making) -> str:
    rule = making.inputs.get("rule")
    bus = "" if _bus(making) == _DEFAULT_BUS else f"{_bus(making)}-"
    return f"{bus}{rule}-{_target_id(making)}"


def _rule_missing(making: Making) -> str | None:
    asked = (making.inputs.get("rule"), _bus(making))
    rules = (
        (rule.outputs.get("name"), rule.inputs.get("eventBusName") or _DEFAULT_BUS)
        for rule in making.inventory.of_type(_RULE)
    )
    if asked in rules:
        return None
    return f"ResourceNotFoundException: Rule {asked[0]} does not exist on EventBus {asked[1]}."


def _targets_remain(removal: Removal) -> str | None:
    rule = removal.target.outputs.get("name")
    if any(target.inputs.get("rule") == rule for target in removal.inventory.of_type(_TARGET)):
        return "ValidationException: Rule can't be deleted since it has targets."
    return None


RESOURCES: Mapping[str, Rules] = {
    _QUEUE: Rules(
        longest_name=80,
        identify=_queue_url,
        computed={"url": _queue_url},
        immutable=frozenset({"fifoQueue"}),
    ),
    "aws:sqs/queuePolicy:QueuePolicy": Rules(
        identify=_queue_of_policy,
        overwrites=True,
        immutable=frozenset({"queueUrl"}),
        refuse_create=(_queue_missing,),
        refuse_update=(_queue_missing,),
    ),
    _RULE: Rules(
        longest_name=64,
        computed={"arn": _rule_arn},
        overwrites=True,
        refuse_delete=(_targets_remain,),
    ),
    _TARGET: Rules(
        identify=_identify_target,
        # The ARN of a target is that of what it leads to.
        computed={"arn": lambda making: making.inputs.get("arn"), "targetId": _target_id},
        overwrites=True,
        immutable=frozenset({"targetId"}),
        refuse_create=(_rule_missing,),
        refuse_update=(_rule_missing,),
    ),
}
