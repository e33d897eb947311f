"""What Karpenter hears of, and who may put it in the queue."""

from __future__ import annotations

import json

import pytest

from holdfast.components.karpenter.eks.interruption_queue import (
    INTERRUPTION_EVENTS,
    event_pattern,
    queue_policy,
)
from tests.support.iam_evaluation import Request, is_allowed, is_denied
from tests.support.official_karpenter import PLACE, official

QUEUE = PLACE.queue("interruptions")
RULES = [PLACE.event_rule("spot"), PLACE.event_rule("health")]
POLICY = queue_policy(QUEUE, RULES)


def sent(source: str, *, service: str = "events.amazonaws.com", tls: str = "true") -> Request:
    return Request(
        action="sqs:SendMessage",
        resource=QUEUE,
        service=service,
        context={"aws:SourceArn": source, "aws:SecureTransport": tls},
    )


def test_every_event_of_the_official_template_has_its_rule() -> None:
    ours = [json.loads(event_pattern(event)) for event in INTERRUPTION_EVENTS]
    theirs = list(official("event-patterns").values())
    assert sorted(map(str, ours)) == sorted(map(str, theirs)), (
        "spot, rebalance, state, health and reservations"
    )


@pytest.mark.parametrize("rule", RULES)
def test_its_own_rules_fill_the_queue(rule: str) -> None:
    assert is_allowed([POLICY], sent(rule)), "a notice that is refused is lost without a word"


def test_no_other_rule_and_no_other_service_fills_the_queue() -> None:
    foreign = "arn:aws:events:eu-west-1:999999999999:rule/spot"
    assert not is_allowed([POLICY], sent(foreign)), "EventBridge sends for every account"
    assert not is_allowed([POLICY], sent(RULES[0], service="sns.amazonaws.com")), (
        "a forged notice drains a node"
    )


def test_nobody_reaches_the_queue_without_tls() -> None:
    assert is_denied([POLICY], sent(RULES[0], tls="false")), "not even what else may"
    reading = Request(action="sqs:ReceiveMessage", resource=QUEUE, context={"aws:SecureTransport": "false"})
    assert is_denied([POLICY], reading), "nor the controller itself"
    assert not is_denied([POLICY], sent(RULES[0])), "with TLS the denial is silent"
