"""The events that Karpenter hears of in time to drain a node, and the queue they come by. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from holdfast.components.iam.aws import Statement, document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Event → who sends it, and its title.
_EVENTS: Final[Mapping[str, tuple[str, str]]] = {
    "spot-interruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state-change": ("aws.ec2", "EC2 Instance State-change Notification"),
    "health": ("aws.health", "AWS Health Event"),
    "reservation-interruption": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}

INTERRUPTION_EVENTS: Final = tuple(_EVENTS)


def event_pattern(event: str) -> str:
    """The pattern of the rule that picks one of the events."""
    source, title = _EVENTS[event]
    return json.dumps({"source": [source], "detail-type": [title]})


def queue_policy(queue: str, rules: Sequence[str]) -> str:
    """Who may use a queue: these event rules may fill it, and nobody may reach it without TLS. All are ARNs."""
    return document(
        Statement(
            sid="AllowInterruptionEvents",
            actions=["sqs:SendMessage"],
            resources=[queue],
            principals={"Service": ["events.amazonaws.com"]},
            # EventBridge sends for every account: without it any rule of any account could fill the queue.
            conditions={"ArnEquals": {"aws:SourceArn": list(rules)}},
        ),
        Statement(
            sid="DenyWithoutTLS",
            effect="Deny",
            actions=["sqs:*"],
            resources=[queue],
            principals="*",
            conditions={"Bool": {"aws:SecureTransport": "false"}},
        ),
    )
