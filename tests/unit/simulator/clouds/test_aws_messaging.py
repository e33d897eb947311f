"""Simulated SQS queues and EventBridge rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.simulator.clouds.state import CloudState
from tests.support.clusters.provider_calls import Engine, Provider, refusal

if TYPE_CHECKING:
    from pathlib import Path

_PATTERN = '{"source": ["aws.ec2"]}'
_POLICY = '{"Version": "2012-10-17", "Statement": []}'


def queues(aws: Provider, name: str = "queue") -> Engine:
    return Engine(provider=aws, type="aws:sqs/queue:Queue", name=name)


def policies(aws: Provider) -> Engine:
    return Engine(provider=aws, type="aws:sqs/queuePolicy:QueuePolicy")


def rules(aws: Provider) -> Engine:
    return Engine(provider=aws, type="aws:cloudwatch/eventRule:EventRule", name="rule")


def targets(aws: Provider) -> Engine:
    return Engine(provider=aws, type="aws:cloudwatch/eventTarget:EventTarget")


def test_a_queue_is_known_by_its_address_and_has_an_arn_of_the_bare_name(aws: Provider) -> None:
    made, outputs = queues(aws).create({"name": "notices"})
    assert made == outputs["url"] == "https://sqs.us-east-1.amazonaws.com/123456789012/notices", (
        "id and address"
    )
    assert outputs["arn"] == "arn:aws:sqs:us-east-1:123456789012:notices", "no type in front of the name"


def test_the_name_of_a_queue_is_known_before_it_exists(aws: Provider) -> None:
    engine = queues(aws)
    planned = engine.plan(engine.check({}))
    assert str(planned["name"]).startswith("queue-"), "policies that name it can be read in a preview"


def test_a_policy_needs_its_queue(aws: Provider) -> None:
    reason = refusal(lambda: policies(aws).create({"queueUrl": "https://sqs/missing", "policy": _POLICY}))
    assert reason.startswith("AWS.SimpleQueueService.NonExistentQueue"), reason


def test_a_policy_set_again_takes_the_place_of_the_first(aws: Provider, state_file: Path) -> None:
    url, _ = queues(aws).create({})
    for _ in range(2):
        policies(aws).create({"queueUrl": url, "policy": _POLICY})
    kept = CloudState(state_file).read().of_type("aws:sqs/queuePolicy:QueuePolicy")
    assert len(kept) == 1, "an interrupted run sets it again, which AWS allows"


def test_a_rule_has_an_arn_of_its_kind(aws: Provider) -> None:
    _, outputs = rules(aws).create({"name": "spot", "eventPattern": _PATTERN})
    assert outputs["arn"] == "arn:aws:events:us-east-1:123456789012:rule/spot", "queue policies name it"


def test_a_rules_name_is_short_enough_for_eventbridge(aws: Provider) -> None:
    engine = Engine(provider=aws, type="aws:cloudwatch/eventRule:EventRule", name="r" * 60)
    reason = refusal(lambda: engine.check({"eventPattern": _PATTERN}))
    assert "has 68 characters of at most 64" in reason, reason


def test_a_target_needs_its_rule(aws: Provider) -> None:
    reason = refusal(lambda: targets(aws).create({"rule": "missing", "arn": "arn:aws:sqs:us-east-1:1:q"}))
    assert reason == "ResourceNotFoundException: Rule missing does not exist on EventBus default.", reason


def test_a_target_keeps_the_arn_it_leads_to(aws: Provider) -> None:
    rules(aws).create({"name": "spot", "eventPattern": _PATTERN})
    made, outputs = targets(aws).create(
        {"rule": "spot", "arn": "arn:aws:sqs:us-east-1:1:q", "targetId": "one"}
    )
    assert outputs["arn"] == "arn:aws:sqs:us-east-1:1:q", "it is the queue's, not its own"
    assert made == "spot-one", "its id is the rule's name and its own"


def test_a_rule_with_targets_cannot_be_deleted(aws: Provider) -> None:
    rule, _ = rules(aws).create({"name": "spot", "eventPattern": _PATTERN})
    target, _ = targets(aws).create({"rule": "spot", "arn": "arn:aws:sqs:us-east-1:1:q"})
    reason = refusal(lambda: rules(aws).delete(rule))
    assert reason == "ValidationException: Rule can't be deleted since it has targets.", reason
    targets(aws).delete(target)
    rules(aws).delete(rule)


def test_a_named_target_put_again_is_still_one_and_leaves_its_rule_free(aws: Provider) -> None:
    rule, _ = rules(aws).create({"name": "spot", "eventPattern": _PATTERN})
    put = {"rule": "spot", "arn": "arn:aws:sqs:us-east-1:1:q", "targetId": "karpenter"}
    first, _ = targets(aws).create(put)
    second, _ = targets(aws).create(put)
    assert first == second, "a run that was cut short after request it puts the same one again"
    targets(aws).delete(second)
    rules(aws).delete(rule)
    assert rules(aws).read(rule)[0] == "", "nothing is left that keeps the rule"
