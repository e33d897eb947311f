"""The pack's rules, in the order in which a report shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from policies.aks_scaling import aks_scaling_findings
from policies.compute_classes import compute_class_findings
from policies.ladder_end import ladder_end_findings
from policies.rule import NAMES_SCHEMA, Level, Rule, Setting, Weight, names
from policies.rules import (
    accelerators,
    checkpoint_buckets,
    default_pool,
    evictions,
    interruption_queue,
    job_identities,
    open_endpoints,
    pinned_versions,
    quotas,
    reachability,
    spot_diversity,
    spot_role,
    spot_taints,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from policies.findings import Finding, StackResource
    from policies.rule import Settings

ON_DEMAND_POOLS: Final = Setting(
    schema={
        **NAMES_SCHEMA,
        "description": "On-demand pools that this stack's ladders end on and another program makes.",
    },
    default=[],
)
_ELSEWHERE: Final = {reachability.ELSEWHERE: ON_DEMAND_POOLS}


def _ladder_end(*, proven: bool) -> Callable[[Sequence[StackResource], Settings], Sequence[Finding]]:
    def find(resources: Sequence[StackResource], settings: Settings) -> Sequence[Finding]:
        found = ladder_end_findings(resources, names(settings, reachability.ELSEWHERE))
        return [each for each in found if each.proven is proven]

    return find


def _without_settings(
    find: Callable[[Sequence[StackResource]], Sequence[Finding]],
) -> Callable[[Sequence[StackResource], Settings], Sequence[Finding]]:
    return lambda resources, _: find(resources)


#: A rule that may prove something, or be unable to tell, is two: a policy of Pulumi's has one level, and what cannot be
#: told yet must not hide what is proven beside it.
RULES: Final[Sequence[Rule]] = (
    Rule(
        name="training-ladder-ends-on-demand",
        title="Training ladders end on on-demand",
        description="A training namespace carries a ladder whose last tier is an on-demand pool that exists.",
        mend="Append a tier with an on-demand pool to the namespace's ladder, or say `maxFailures: -1` on its last tier if "
        "its jobs shall stay on spot for ever.",
        level=Level.MANDATORY,
        weight=Weight.CRITICAL,
        find=_ladder_end(proven=True),
        settings=_ELSEWHERE,
    ),
    Rule(
        name="training-ladder-end-not-known-yet",
        title="Training ladders whose end is not known yet",
        description="What a training namespace's ladder ends on can be told before the update.",
        mend="Nothing, if the update passes: it checks again with every value known.",
        level=Level.ADVISORY,
        weight=Weight.LOW,
        find=_ladder_end(proven=False),
        settings=_ELSEWHERE,
    ),
    Rule(
        name="training-reaches-on-demand",
        title="Training reaches on-demand capacity",
        description="Every job of the shapes that a training namespace declares can run on an on-demand pool of its ladder, "
        "and gets there: labels, taints, machine types, the whole gang's room, zones.",
        mend="Mend the link that the message names: the pool's machines, taints or maxNodes, or the shape.",
        level=Level.MANDATORY,
        weight=Weight.CRITICAL,
        find=reachability.proven,
        settings=_ELSEWHERE,
    ),
    Rule(
        name="training-reach-to-be-considered",
        title="Training that may not reach on-demand, or never leaves spot",
        description="It can be told before the update whether jobs can fall back; every tier is of use to them; none stays on "
        "spot for ever.",
        mend="Read what is said: an unknown is checked again by the update, a tier of no use costs its timeout each time.",
        level=Level.ADVISORY,
        weight=Weight.MEDIUM,
        find=reachability.unproven,
        settings=_ELSEWHERE,
    ),
    Rule(
        name="same-accelerator-on-demand",
        title="The same accelerator on on-demand",
        description="A ladder's on-demand pool has the accelerator that its spot pools have.",
        mend="End the ladder on an on-demand pool with the accelerator it starts on.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=accelerators.find,
    ),
    Rule(
        name="spot-pools-are-tainted",
        title="Spot pools keep away who does not ask for them",
        description="Spot nodes are tainted, on-demand nodes have no taint of spot, and no pool has both.",
        mend="Make a pool of each capacity type, and taint the spot one.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=spot_taints.find,
    ),
    Rule(
        name="spot-pools-are-diverse",
        title="Spot pools buy in several markets",
        description="A spot pool has several machine types or zones to buy in.",
        mend="Add machine types, or zones.",
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
        mend="Add an on-demand pool of CPU machines without taints.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=default_pool.find,
    ),
    Rule(
        name="only-the-spot-notice-evicts",
        title="Nothing but the spot notice evicts training",
        description="Karpenter neither consolidates, nor replaces for drift, nor expires nodes on which jobs train, and pods "
        "on spot do not refuse the drain.",
        mend="Set consolidationPolicy: WhenEmpty, expireAfter: Never and a Drifted budget of 0; remove do-not-disrupt.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=evictions.find,
    ),
    Rule(
        name="interruption-queue-is-wired",
        title="Karpenter hears of interruptions",
        description="Where Karpenter buys spot on AWS, it has an interruption queue, and EventBridge sends the notices there.",
        mend="Set the chart's settings.interruptionQueue, and add EventBridge rules with the queue as their target.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=interruption_queue.find,
    ),
    Rule(
        name="spot-role-is-ensured",
        title="The service-linked role of EC2 Spot is ensured",
        description="Where spot is bought on AWS, AWSServiceRoleForEC2Spot is there.",
        mend="Make the role, or say that the account has it.",
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
        name="checkpoints-are-safe",
        title="Checkpoints are private, kept and protected",
        description="Stores of checkpoints are private and encrypted, keep what was overwritten, never expire what is "
        "current, and cannot be deleted in protected stacks.",
        mend="Mend what the message names.",
        level=Level.MANDATORY,
        weight=Weight.CRITICAL,
        find=checkpoint_buckets.find,
        settings={
            checkpoint_buckets.BUCKETS: Setting(
                schema={
                    **NAMES_SCHEMA,
                    "description": "Stores that hold checkpoints without `checkpoint` in their names.",
                },
                default=[],
            ),
            checkpoint_buckets.PROTECTED: Setting(
                schema={
                    **NAMES_SCHEMA,
                    "description": "Patterns of the names of stacks whose stores must be protected.",
                },
                default=["prod", "*-prod", "production", "*-production"],
            ),
        },
    ),
    Rule(
        name="job-identities-reach-one-prefix",
        title="Identities of jobs reach one prefix",
        description="No identity may read or write the checkpoints of every namespace.",
        mend="Grant the namespace's own prefix, folder or container.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=job_identities.find,
    ),
    Rule(
        name="api-endpoints-are-closed",
        title="API servers are not open to the world",
        description="A cluster's API server is private, or named ranges alone may call it.",
        mend="Name the ranges, or keep it private.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=open_endpoints.find,
    ),
    Rule(
        name="charts-and-images-are-pinned",
        title="Charts and images are pinned",
        description="Helm releases have exact versions, and pods images that do not change. Of a release the chart, its "
        "version and its values are seen, never the objects made of them.",
        mend="Give the exact version, tag or digest.",
        level=Level.MANDATORY,
        weight=Weight.MEDIUM,
        find=pinned_versions.find,
    ),
    Rule(
        name="training-namespaces-set-quotas",
        title="Training namespaces set quotas",
        description="A training namespace has a ResourceQuota.",
        mend="Add one.",
        level=Level.ADVISORY,
        weight=Weight.LOW,
        find=quotas.find,
    ),
    Rule(
        name="compute-class-of-one-capacity-type",
        title="ComputeClasses of one capacity type",
        description="A ComputeClass of GKE has nodes of one capacity type, and pods select it by nothing beside it.",
        mend="Make a ComputeClass for each capacity type, and select nodes by the class alone.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=_without_settings(compute_class_findings),
    ),
    Rule(
        name="aks-cluster-scales-in-one-way",
        title="AKS clusters with one way of scaling",
        description="An AKS cluster has node auto-provisioning or pools that scale by themselves, and pools of that one "
        "alone.",
        mend="Keep to NodePools under node auto-provisioning, and to agent pools without it.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=_without_settings(aks_scaling_findings),
    ),
)
