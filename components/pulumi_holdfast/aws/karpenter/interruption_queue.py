"""The queue from which Karpenter receives interruption events, and the rules that fill it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_aws.cloudwatch import EventRule, EventTarget
from pulumi_aws.sqs import Queue, QueuePolicy

from pulumi_holdfast.aws.policy_documents import Place, Statement, document

#: Event → its source and its detail type.
_EVENTS: Final[Mapping[str, tuple[str, str]]] = {
    "spot": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state-change": ("aws.ec2", "EC2 Instance State-change Notification"),
    "health": ("aws.health", "AWS Health Event"),
    "reservation": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}

INTERRUPTION_EVENTS: Final = tuple(_EVENTS)


def event_pattern(event: str) -> str:
    """Return the pattern of the rule for one of the events."""
    source, title = _EVENTS[event]
    return json.dumps({"source": [source], "detail-type": [title]})


def queue_policy(queue: str, rules: Sequence[str]) -> str:
    """Return the queue's policy: these rules may send, and TLS is required. All arguments are ARNs."""
    return document(
        Statement(
            sid="AllowInterruptionEvents",
            actions=["sqs:SendMessage"],
            resources=[queue],
            principals={"Service": ["events.amazonaws.com"]},
            # EventBridge sends on behalf of all accounts: without it any account's rule could fill the queue.
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


#: In seconds. A spot notice comes 2 minutes in advance: older messages are about nodes that are gone.
_RETENTION: Final = 300


@dataclass(frozen=True, kw_only=True)
class InterruptionQueueArgs:
    """Where the queue is."""

    place: Place


class InterruptionQueue(ComponentResource):
    """The queue of interruption events from EC2 and AWS Health (`holdfast:index:InterruptionQueue`).

    Creates the queue, encrypted with SQS's keys, its policy, and an event rule with a target for each kind of
    event. The events are those of the whole region; Karpenter ignores other instances.
    """

    queue_name: Output[str]

    def __init__(self, name: str, args: InterruptionQueueArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:InterruptionQueue", name, None, opts)
        queue = Queue(
            f"{name}-queue",
            message_retention_seconds=_RETENTION,
            sqs_managed_sse_enabled=True,
            opts=ResourceOptions(parent=self),
        )
        rules = {
            event: EventRule(
                f"{name}-{event}",
                event_pattern=event_pattern(event),
                description=f"Tells Karpenter of {event.replace('-', ' ')}",
                opts=ResourceOptions(parent=self),
            )
            for event in INTERRUPTION_EVENTS
        }
        policy = QueuePolicy(
            f"{name}-policy",
            queue_url=queue.url,
            policy=Output.all(queue.name, *(rule.name for rule in rules.values())).apply(
                lambda names: _policy(args.place, names)
            ),
            opts=ResourceOptions(parent=self),
        )
        for event, rule in rules.items():
            EventTarget(
                f"{name}-{event}-target",
                rule=rule.name,
                arn=queue.arn,
                # A generated ID would differ after an interrupted run and leave a second target behind.
                target_id="karpenter",
                # An event that the queue rejects is lost silently.
                opts=ResourceOptions(parent=self, depends_on=[policy]),
            )
        self.queue_name = queue.name
        self.register_outputs({"queue_name": self.queue_name})


def _policy(place: Place, names: Sequence[str]) -> str:
    queue, *rules = names
    return queue_policy(place.queue(queue), [place.event_rule(rule) for rule in rules])
