"""Rules on ladders: that they lead jobs to on-demand capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.ladder_end import ladder_end_findings
from holdfast.policies.rule import NAMES_SCHEMA, Level, Rule, Setting, Weight, names
from holdfast.policies.rules import accelerators, reachability

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.policies.findings import Finding, StackResource
    from holdfast.policies.rule import Settings

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


#: A rule that may prove something, or be unable to tell, is two: a policy of Pulumi's has one level, and what cannot be
#: told yet must not hide what is proven beside it.
LADDERS: Final[Sequence[Rule]] = (
    Rule(
        name="training-ladder-ends-on-demand",
        title="Training ladders end on on-demand",
        description="A training namespace carries a ladder whose last tier is an on-demand pool that exists.",
        fix="Append a tier with an on-demand pool to the namespace's ladder, or say `maxFailures: -1` on its last tier if "
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
        fix="Nothing, if the update passes: it checks again with every value known.",
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
        fix="Mend the link that the message names: the pool's machines, taints or maxNodes, or the shape.",
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
        fix="Read what is said: an unknown is checked again by the update, a tier of no use costs its timeout each time.",
        level=Level.ADVISORY,
        weight=Weight.MEDIUM,
        find=reachability.unproven,
        settings=_ELSEWHERE,
    ),
    Rule(
        name="same-accelerator-on-demand",
        title="The same accelerator on on-demand",
        description="A ladder's on-demand pool has the accelerator that its spot pools have.",
        fix="End the ladder on an on-demand pool with the accelerator it starts on.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=accelerators.find,
    ),
)
