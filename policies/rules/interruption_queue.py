"""Karpenter on AWS receives interruption notices: it has a queue, and EventBridge sends the notices there.

Without them nothing drains a node in its last two minutes: pods die with the machine, and no checkpoint is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.pools.karpenter import may_buy_spot, node_pools
from pulumi_holdfast.program.pools.node_classes import is_on_aws
from pulumi_holdfast.program.resources import StackResource, at, text_at
from pulumi_holdfast.program.settings import MADE_ELSEWHERE, Elsewhere, Settings, is_made_elsewhere
from rule import Finding, Group, Level, Rule, RuleSeverity

RELEASES: Final = (
    "kubernetes:helm.sh/v3:Release",
    "kubernetes:helm.sh/v3:Chart",
    "kubernetes:helm.sh/v4:Chart",
)
_RULE: Final = "aws:cloudwatch/eventRule:EventRule"
_TARGET: Final = "aws:cloudwatch/eventTarget:EventTarget"
_PARTS: Final = (_RULE, "aws:sqs/queue:Queue")
_NOTICE: Final = "EC2 Spot Instance Interruption Warning"


def find(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return what is missing between the notice and a Karpenter that this program installs on AWS."""
    releases = [each for each in resources if _is_karpenter(each)]
    if not releases or not any(may_buy_spot(each) and is_on_aws(each) for each in node_pools(resources)):
        return ()
    found = [
        Finding(
            urn=release.urn,
            message=f"{release.logical_name!r} runs Karpenter without an interruption queue, so spot nodes are reclaimed "
            "without a drain. Set its value `settings.interruptionQueue` to the name of a queue.",
        )
        for release in releases
        if at(release.props, "values", "settings", "interruptionQueue") in (None, "")
    ]
    declared = is_made_elsewhere(settings, Elsewhere.QUEUE)
    if not found and not declared and not _notices_reach_a_queue(resources):
        found.append(
            Finding(
                urn=releases[0].urn,
                message=f"no EventBridge rule of this program sends `{_NOTICE}` to a queue, so Karpenter's queue stays "
                f"empty. Add a rule for it ({_RULE}) with the queue as its target, or declare "
                f"`{MADE_ELSEWHERE}: [{Elsewhere.QUEUE.value}]` if another program makes both.",
                # A program without any queue or rule leaves both to another one.
                proven=any(each.type in _PARTS for each in resources),
            )
        )
    return tuple(found)


def _is_karpenter(resource: StackResource) -> bool:
    """Return whether it is a Helm release of Karpenter's own chart."""
    chart = text_at(resource.props, "chart")
    return (
        resource.type in RELEASES
        and isinstance(chart, str)
        and chart.rstrip("/").rpartition("/")[2] == "karpenter"
    )


def _notices_reach_a_queue(resources: Sequence[StackResource]) -> bool:
    rules = [each for each in resources if each.type == _RULE and _matches(each)]
    targets = [each for each in resources if each.type == _TARGET]
    # A name that is not known yet belongs to a resource that does not exist yet: then the reference identifies it.
    return any(
        rule.urn in target.refers_to.get("rule", ()) or _names(target, rule)
        for rule in rules
        for target in targets
    )


def _matches(rule: StackResource) -> bool:
    pattern = text_at(rule.props, "eventPattern")
    return pattern is UNKNOWN or (pattern is not None and _NOTICE in pattern)


def _names(target: StackResource, rule: StackResource) -> bool:
    named, name = text_at(target.props, "rule"), text_at(rule.props, "name")
    return UNKNOWN in (named, name) or (named is not None and named == name)


RULE: Final = Rule(
    name="interruption-queue-configured",
    title="Karpenter receives interruption notices",
    description="If Karpenter buys spot on AWS, it has an interruption queue, and EventBridge sends the notices there.",
    fix="Set the chart's settings.interruptionQueue, and add EventBridge rules with the queue as their target.",
    group=Group.PLATFORM,
    level=Level.ADVISORY,
    strict=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
