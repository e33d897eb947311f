"""Rules on pools, and on what keeps their nodes from being taken without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.aks_scaling import aks_scaling_findings
from holdfast.policies.compute_classes import compute_class_findings
from holdfast.policies.rule import Level, Rule, Setting, Weight
from holdfast.policies.rules import (
    default_pool,
    evictions,
    interruption_queue,
    spot_diversity,
    spot_role,
    spot_taints,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.policies.findings import Finding, StackResource
    from holdfast.policies.rule import Settings


def _without_settings(
    find: Callable[[Sequence[StackResource]], Sequence[Finding]],
) -> Callable[[Sequence[StackResource], Settings], Sequence[Finding]]:
    return lambda resources, _: find(resources)


POOLS: Final[Sequence[Rule]] = (
    Rule(
        name="spot-pools-are-tainted",
        title="Spot pools keep away who does not ask for them",
        description="Spot nodes are tainted, on-demand nodes have no taint of spot, and no pool has both.",
        fix="Make a pool of each capacity type, and taint the spot one.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=spot_taints.find,
    ),
    Rule(
        name="spot-pools-are-diverse",
        title="Spot pools buy in several markets",
        description="A spot pool has several machine types or zones to buy in.",
        fix="Add machine types, or zones.",
        level=Level.ADVISORY,
        weight=Weight.MEDIUM,
        find=spot_diversity.find,
        settings={
            spot_diversity.MARKETS: Setting(
                schema={
                    "type": "integer",
                    "minimum": 1,
                    "description": "How many markets (machine types × zones) a spot pool has at least.",
                },
                default=2,
            ),
            spot_diversity.ZONES: Setting(
                schema={
                    "type": "integer",
                    "minimum": 1,
                    "description": "How many zones a pool has that names none.",
                },
                default=3,
            ),
        },
    ),
    Rule(
        name="a-default-pool-exists",
        title="Pods that ask for nothing have a pool",
        description="An on-demand pool of CPU machines without taints takes Ray heads, submitters and helpers.",
        fix="Add an on-demand pool of CPU machines without taints.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=default_pool.find,
    ),
    Rule(
        name="only-the-spot-notice-evicts",
        title="Nothing but the spot notice evicts training",
        description="Karpenter neither consolidates, nor replaces for drift, nor expires nodes on which jobs train, and pods "
        "on spot do not refuse the drain.",
        fix="Set consolidationPolicy: WhenEmpty, expireAfter: Never and a Drifted budget of 0; remove do-not-disrupt.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=evictions.find,
    ),
    Rule(
        name="interruption-queue-is-wired",
        title="Karpenter hears of interruptions",
        description="Where Karpenter buys spot on AWS, it has an interruption queue, and EventBridge sends the notices there.",
        fix="Set the chart's settings.interruptionQueue, and add EventBridge rules with the queue as their target.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=interruption_queue.find,
    ),
    Rule(
        name="spot-role-is-ensured",
        title="The service-linked role of EC2 Spot is ensured",
        description="Where spot is bought on AWS, AWSServiceRoleForEC2Spot is there.",
        fix="Make the role, or say that the account has it.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=spot_role.find,
        settings={
            spot_role.EXISTS: Setting(
                schema={"type": "boolean", "description": "Whether the account has the role already."},
                default=False,
            )
        },
    ),
    Rule(
        name="compute-class-of-one-capacity-type",
        title="ComputeClasses of one capacity type",
        description="A ComputeClass of GKE has nodes of one capacity type, and pods select it by nothing beside it.",
        fix="Make a ComputeClass for each capacity type, and select nodes by the class alone.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=_without_settings(compute_class_findings),
    ),
    Rule(
        name="aks-cluster-scales-in-one-way",
        title="AKS clusters with one way of scaling",
        description="An AKS cluster has node auto-provisioning or pools that scale by themselves, and pools of that one "
        "alone.",
        fix="Keep to NodePools under node auto-provisioning, and to agent pools without it.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=_without_settings(aks_scaling_findings),
    ),
)
