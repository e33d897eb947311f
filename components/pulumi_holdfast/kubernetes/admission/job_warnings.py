"""Warnings about jobs that select spot and do not follow a ladder, and about jobs without pods.

Such a job is admitted. Without a warning its pods would wait, or fail for reasons that only the Events of child Jobs show.
The API server returns these warnings to the client that creates the job, such as `kubectl apply`; the fallback controller says
the same in an Event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pulumi_holdfast.kubernetes.admission.expressions import fill_template, text
from pulumi_holdfast.kubernetes.admission.job_admission import Manifest, match_constraints
from pulumi_holdfast.kubernetes.admission.job_expressions import JobKind, asks_for_spot, variables
from pulumi_holdfast.kubernetes.admission.rules import NodeSelection
from pulumi_holdfast.kubernetes.fallback_policy.definition import API_VERSION, KIND
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import LADDER
from pulumi_holdfast.ladder.reachability import messages

# If the detailed message cannot be evaluated.
_CANNOT_FOLLOW: Final = "the job selects spot, but does not follow the ladder of its namespace"

_USED: Final = ("tiers", "pools", "spotPools", "items", "specs", "spots", "suited", "label", "queued")


def job_warning(kind: JobKind, capacity: Sequence[NodeSelection]) -> Manifest:
    """Return the policy that warns about jobs of a kind, and its binding; it rejects nothing."""
    name = f"training-{kind.resource}-warnings"
    known = variables(kind, capacity)
    others = ", ".join(f"{spec}.orValue({{}})" for spec in kind.other_pods)
    used = {
        **{each: known[each] for each in _USED},
        "others": f"[{others}].exists(s, {asks_for_spot(capacity)})" if others else "false",
        "managed": f"object.?spec.?managedBy.orValue({text(kind.controller)}) == {text(kind.controller)}",
    }
    following: Json = {
        "expression": f"!({not_following()})",
        "message": _CANNOT_FOLLOW,
        "messageExpression": _why_not_following(kind),
    }
    has_pods: Json = {"expression": "size(variables.items) > 0", "message": messages.NO_TEMPLATE.sentence}
    policy: Json = {
        # A job for which this cannot be evaluated is warned about, too.
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": API_VERSION, "kind": KIND},
        "matchConstraints": match_constraints(kind, "CREATE"),
        "variables": [{"name": each, "expression": expression} for each, expression in used.items()],
        "validations": [following, *([] if kind.other_pods else [has_pods])],
    }
    binding: Json = {
        "policyName": name,
        "paramRef": {"name": LADDER, "parameterNotFoundAction": "Allow"},
        "validationActions": ["Warn"],
    }
    return Manifest(name=name, policy=policy, binding=binding)


def not_following() -> str:
    """Return whether a job selects spot, and neither follows the ladder nor says that it does not."""
    on_spot = "(variables.spots.exists(s, s) || variables.others)"
    return f'variables.managed && !variables.queued && variables.label == "" && {on_spot}'


def _why_not_following(kind: JobKind) -> str:
    """Return the message on a job that does not follow: what keeps it, or the kinds of machines, where they are the reason."""
    has_gpus = "variables.tiers.exists(t, t.?facts.?machine.?gpus.orValue(0) > 0)"
    kinds = f"{has_gpus} ? {text(messages.ONLY_GPUS_ON_LADDER)} : {text(messages.NO_GPUS_ON_LADDER)}"
    why = f"variables.suited ? {text(messages.NOT_MARKED)} : ({kinds})"

    def said(reason: str, fix: str) -> str:
        words = fill_template(
            messages.NOT_FOLLOWING.reason, pools=f"variables.pools.join({text(', ')})", why=reason
        )
        return f"{words} + {text(f'. {fix}')}"

    found = said(f"({why})", messages.NOT_FOLLOWING.fix)
    if kind.other_pods:
        head = said(text(messages.ONLY_THE_HEAD.reason), messages.ONLY_THE_HEAD.fix)
        found = f"variables.spots.exists(s, s) ? {found} : {head}"
    for field, is_set in kind.unstoppable.items():
        stop = messages.CANNOT_STOP.filled(field=field)
        found = f"{is_set} ? {said(text(stop.reason), stop.fix)} : ({found})"
    return found
