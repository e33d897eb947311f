"""The rule that Karpenter on AWS hears of interruptions: a queue, named to it, that EventBridge sends the notices to.

Without it nothing drains the node in the two minutes there are: pods die with the machine, and no checkpoint is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.findings import Finding
from holdfast.policies.known_values import UNKNOWN, at, text_at
from holdfast.policies.node_pools import may_buy_spot, node_pools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.rule import Settings

RELEASES: Final = (
    "kubernetes:helm.sh/v3:Release",
    "kubernetes:helm.sh/v3:Chart",
    "kubernetes:helm.sh/v4:Chart",
)
_RULE: Final = "aws:cloudwatch/eventRule:EventRule"
_TARGET: Final = "aws:cloudwatch/eventTarget:EventTarget"
_NOTICE: Final = "EC2 Spot Instance Interruption Warning"


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return what is missing between the notice and a Karpenter that this program installs on AWS."""
    releases = [each for each in resources if is_karpenter(each)]
    if not releases or not any(may_buy_spot(each) and _is_on_aws(each) for each in node_pools(resources)):
        return ()
    found = [
        Finding(
            urn=release.urn,
            message=f"{release.logical_name!r} runs Karpenter without an interruption queue, so that spot nodes are taken "
            "without a drain. Set its value `settings.interruptionQueue` to the name of a queue.",
        )
        for release in releases
        if queue_of(release) in (None, "")
    ]
    if not found and not _notices_reach_a_queue(resources):
        found.append(
            Finding(
                urn=releases[0].urn,
                message=f"no EventBridge rule of this program sends `{_NOTICE}` to a queue, so that Karpenter's stays "
                f"empty. Add a rule for it ({_RULE}) with the queue as its target.",
            )
        )
    return tuple(found)


def is_karpenter(resource: StackResource) -> bool:
    """Whether it is a Helm release of Karpenter's own chart."""
    chart = text_at(resource.props, "chart")
    return (
        resource.type in RELEASES
        and isinstance(chart, str)
        and chart.rstrip("/").rpartition("/")[2] == "karpenter"
    )


def queue_of(release: StackResource) -> object:
    """The name of its queue, UNKNOWN where it, or the values around it, are not known."""
    return at(release.props, "values", "settings", "interruptionQueue")


def _is_on_aws(node_pool: StackResource) -> bool:
    return at(node_pool.props, "spec", "template", "spec", "nodeClassRef", "group") == "karpenter.k8s.aws"


def _notices_reach_a_queue(resources: Sequence[StackResource]) -> bool:
    rules = [each for each in resources if each.type == _RULE and _matches(each)]
    targets = [each for each in resources if each.type == _TARGET]
    # An unknown name is that of a resource which is still to be made: then the reference tells.
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
