"""Warnings about jobs that select spot and do not follow a ladder.

Such a job is admitted. Without a warning its pods would wait, or fail for reasons that only the Events of child Jobs show.
The API server returns these warnings to the client that creates the job, such as `kubectl apply`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pulumi_holdfast.kubernetes.admission.expressions import text
from pulumi_holdfast.kubernetes.admission.job_admission import Manifest, match_constraints
from pulumi_holdfast.kubernetes.admission.job_expressions import JobKind, variables
from pulumi_holdfast.kubernetes.admission.rules import NodeSelection
from pulumi_holdfast.kubernetes.admission.tier_checks import fill_sentence
from pulumi_holdfast.kubernetes.fallback_policy.definition import API_VERSION, KIND
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import LADDER
from pulumi_holdfast.ladder.reachability import messages

# If the detailed message cannot be evaluated.
_NOT_FOLLOWING: Final = "the job selects spot, but does not follow the ladder of its namespace"

_USED: Final = ("tiers", "pools", "spotPools", "items", "specs", "spots", "suited", "label", "queued", "own")


def job_warning(kind: JobKind, capacity: Sequence[NodeSelection]) -> Manifest:
    """Return the policy that warns about jobs of a kind, and its binding; it rejects nothing."""
    name = f"training-{kind.resource}-warnings"
    known = variables(kind, capacity)
    policy: Json = {
        # A job for which this cannot be evaluated is warned about, too.
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": API_VERSION, "kind": KIND},
        "matchConstraints": match_constraints(kind, "CREATE"),
        "variables": [{"name": each, "expression": known[each]} for each in _USED],
        "validations": [_validation(not_following(), _NOT_FOLLOWING, _why_not_following())],
    }
    binding: Json = {
        "policyName": name,
        "paramRef": {"name": LADDER, "parameterNotFoundAction": "Allow"},
        "validationActions": ["Warn"],
    }
    return Manifest(name=name, policy=policy, binding=binding)


def _validation(applies: str, generic: str, message: str) -> Mapping[str, str]:
    return {"expression": f"!({applies})", "message": generic, "messageExpression": message}


def not_following() -> str:
    """Return whether a job selects spot, and neither follows the ladder nor says that it does not."""
    return 'variables.own && !variables.queued && variables.label == "" && variables.spots.exists(s, s)'


def _why_not_following() -> str:
    """Return the message on a job that does not follow: the kinds of machines, where they are the reason."""
    has_gpus = "variables.tiers.exists(t, t.?facts.?machine.?gpus.orValue(0) > 0)"
    kinds = f"{has_gpus} ? {text(messages.ONLY_GPUS_ON_LADDER)} : {text(messages.NO_GPUS_ON_LADDER)}"
    why = f"variables.suited ? {text(messages.NOT_MARKED)} : ({kinds})"
    return fill_sentence(messages.NOT_FOLLOWING, pools=f"variables.pools.join({text(', ')})", why=f"({why})")
