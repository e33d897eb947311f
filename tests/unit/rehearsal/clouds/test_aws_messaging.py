"""Simulated SQS queues and EventBridge rules."""

from pathlib import Path

from pulumi_holdfast.rehearsal.clouds.state import CloudState
from tests.support.clusters.provider_calls import Engine, Provider, refused

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


def test_a_queue_has_an_address_an_arn_and_a_name_known_in_a_preview(aws: Provider) -> None:
    made, outputs = queues(aws).create({"name": "notices"})
    assert made == outputs["url"] == "https://sqs.us-east-1.amazonaws.com/123456789012/notices"
    assert outputs["arn"] == "arn:aws:sqs:us-east-1:123456789012:notices"
    engine = queues(aws)
    planned = engine.plan(engine.check({}))
    assert str(planned["name"]).startswith("queue-")


def test_a_policy_needs_its_queue_and_replaces_the_previous_one(aws: Provider, state_file: Path) -> None:
    policies(aws).refuses_create(
        {"queueUrl": "https://sqs/missing", "policy": _POLICY}, "AWS.SimpleQueueService.NonExistentQueue"
    )
    url, _ = queues(aws).create({})
    for _ in range(2):
        policies(aws).create({"queueUrl": url, "policy": _POLICY})
    kept = CloudState(state_file).read().of_type("aws:sqs/queuePolicy:QueuePolicy")
    assert len(kept) == 1


def test_a_rule_has_an_arn_and_a_short_name(aws: Provider) -> None:
    _, outputs = rules(aws).create({"name": "spot", "eventPattern": _PATTERN})
    assert outputs["arn"] == "arn:aws:events:us-east-1:123456789012:rule/spot"
    engine = Engine(provider=aws, type="aws:cloudwatch/eventRule:EventRule", name="r" * 60)
    refused(lambda: engine.check({"eventPattern": _PATTERN}), "has 68 characters of at most 64")


def test_a_target_needs_its_rule_and_keeps_the_arn_of_its_queue(aws: Provider) -> None:
    targets(aws).refuses_create(
        {"rule": "missing", "arn": "arn:aws:sqs:us-east-1:1:q"},
        "ResourceNotFoundException: Rule missing does not exist on EventBus default.",
    )
    rules(aws).create({"name": "spot", "eventPattern": _PATTERN})
    made, outputs = targets(aws).create(
        {"rule": "spot", "arn": "arn:aws:sqs:us-east-1:1:q", "targetId": "one"}
    )
    assert outputs["arn"] == "arn:aws:sqs:us-east-1:1:q"
    assert made == "spot-one"


def test_a_rule_is_deleted_only_after_its_targets(aws: Provider) -> None:
    rule, _ = rules(aws).create({"name": "spot", "eventPattern": _PATTERN})
    target, _ = targets(aws).create({"rule": "spot", "arn": "arn:aws:sqs:us-east-1:1:q"})
    rules(aws).refuses_delete(rule, "ValidationException: Rule can't be deleted since it has targets.")
    targets(aws).delete(target)
    rules(aws).delete(rule)
    rule, _ = rules(aws).create({"name": "spot", "eventPattern": _PATTERN})
    put = {"rule": "spot", "arn": "arn:aws:sqs:us-east-1:1:q", "targetId": "karpenter"}
    first, _ = targets(aws).create(put)
    second, _ = targets(aws).create(put)
    assert first == second
    targets(aws).delete(second)
    rules(aws).delete(rule)
    assert rules(aws).read(rule)[0] == ""
