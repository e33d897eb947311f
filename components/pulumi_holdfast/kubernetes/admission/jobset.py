"""Admission of JobSets: the patches that let a JobSet follow the ladder of its namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pulumi_holdfast.kubernetes.admission.expressions import text, texts
from pulumi_holdfast.kubernetes.admission.job_expressions import JobKind
from pulumi_holdfast.kubernetes.admission.job_patches import (
    annotation_patches,
    json_object,
    json_of_each,
    json_plain,
    json_text,
    json_texts,
    label_patches,
    mapping,
    only_if,
    pointer_below,
    restore_annotations,
    restore_tier,
    select_tier,
    set_field,
    start_pool,
)
from pulumi_holdfast.ladder.ladder import Failures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_holdfast.kubernetes.admission.rules import NodeSelection

JOBSET: Final = JobKind(
    group="jobset.x-k8s.io",
    version="v1alpha2",
    resource="jobsets",
    templates=("replicatedJobs",),
    name="name",
    pod_template=("template", "spec", "template"),
    controller="jobset.sigs.k8s.io/jobset-controller",
)

#: More than the longest ladder can count. The controller decides when a job has failed too often: JobSet's
#: own limit is immutable, and a JobSet that reaches it cannot be resumed.
MOST_RESTARTS: Final = 1_000_000

#: The name of the rule that admission adds as the failure policy's first.
EVICTIONS: Final = "EvictionsDoNotCount"

_DISRUPTED: Final = "DisruptionTarget"
_MAX_RESTARTS: Final = "object.?spec.?failurePolicy.?maxRestarts.orValue(0)"


def jobset_patches(capacity: Sequence[NodeSelection]) -> str:
    """Return the patches for a new JobSet; `capacity` are the labels with which pods select spot."""
    of_each = " + ".join(
        [
            label_patches(_template_path(), _template_metadata()),
            *_fail_on_lost_pod(),
            select_tier(JOBSET, capacity, start_pool()),
        ]
    )
    done = " + ".join(
        [
            label_patches('""', "optional.of(object.metadata)"),
            annotation_patches(_original_values()),
            _failure_policy(),
            f"variables.following.map(i, {of_each}).flatten()",
        ]
    )
    return f"size(variables.following) == 0 ? [] : ({done})"


def jobset_repairs(capacity: Sequence[NodeSelection]) -> str:
    """Return the patches for an adjusted JobSet over which its manifest is applied again."""
    # JobSet defaults this field on creation only; the manifest does not have it.
    missing = "!variables.items[i].?template.?spec.?completionMode.hasValue()"
    completion = set_field(
        pointer_below(JOBSET.path_of("i"), "/template/spec/completionMode"), text("Indexed")
    )
    of_each = " + ".join([restore_tier(JOBSET, capacity), *_fail_on_lost_pod(), only_if(missing, completion)])
    ours = f'r.?name.orValue("") == {text(EVICTIONS)}'
    has_rule = f"object.?spec.?failurePolicy.?rules.orValue([]).exists(r, {ours})"
    before = "oldObject.spec.?failurePolicy.?maxRestarts.orValue(0)"
    lowered = f"{before} >= {MOST_RESTARTS} && {_MAX_RESTARTS} < {MOST_RESTARTS}"
    # The field is immutable: JobSet itself rejects any other change of it.
    undone = f"!{has_rule} || {lowered}"
    policy = only_if(undone, set_field(text("/spec/failurePolicy"), "oldObject.spec.failurePolicy"))
    done = " + ".join(
        [
            label_patches('""', "optional.of(object.metadata)"),
            restore_annotations(),
            policy,
            f"variables.following.map(i, {of_each}).flatten()",
        ]
    )
    return f"size(variables.following) == 0 ? [] : ({done})"


def _template_path() -> str:
    return pointer_below(JOBSET.path_of("i"), JOBSET.template_path)


def _template_metadata() -> str:
    return f"{JOBSET.template_of('variables.items[i]')}.?metadata"


def _fail_on_lost_pod() -> Sequence[str]:
    """Make a lost pod fail its Job at once, with a reason that distinguishes evictions.

    Without a pod failure policy an eviction counts as any other failure. With a retry inside the Job, one pod would be
    recreated alone for a gang that does not work without the lost one.
    """
    job = pointer_below(JOBSET.path_of("i"), "/template/spec")
    spec = "variables.items[i].template.spec"
    condition = f'[{{"type": {text(_DISRUPTED)}, "status": "True"}}]'
    ours = mapping({"action": text("FailJob"), "onPodConditions": condition})
    is_ours = (
        f'p.action == "FailJob" && p.?onPodConditions.orValue([]).exists(c, c.type == {text(_DISRUPTED)})'
    )
    others = f"{spec}.?podFailurePolicy.?rules.orValue([]).filter(p, !({is_ours}))"
    rules = f'{{"rules": [dyn({ours})] + {others}.map(p, dyn(p))}}'
    at_once = [
        set_field(pointer_below(job, "/template/spec/restartPolicy"), text("Never")),
        set_field(pointer_below(job, "/backoffLimit"), "0"),
        set_field(pointer_below(job, "/podFailurePolicy"), rules),
    ]
    # The API accepts no other value together with a pod failure policy.
    replacement = f'{spec}.?podReplacementPolicy.orValue("Failed") != "Failed"'
    failed = set_field(pointer_below(job, "/podReplacementPolicy"), text("Failed"))
    return [f"[{', '.join(at_once)}]", only_if(replacement, failed)]


def _failure_policy() -> str:
    """Make JobSet ignore evictions, and all failures if any failure moves a job to the next tier.

    Otherwise JobSet's limit counts pods that fail because a peer was evicted.
    """
    rule = mapping(
        {
            "name": text(EVICTIONS),
            "action": text("RestartJobSetAndIgnoreMaxRestarts"),
            "onJobFailureReasons": texts(["PodFailurePolicy"]),
            "onJobFailureMessagePatterns": texts([f".*{_DISRUPTED}.*"]),
        }
    )
    any_failure = f"params.spec.?failures.orValue({text(Failures.ANY)}) == {text(Failures.ANY)}"
    restarts = f"{any_failure} && {_MAX_RESTARTS} < {MOST_RESTARTS} ? {MOST_RESTARTS} : {_MAX_RESTARTS}"
    path = text("/spec/failurePolicy")
    whole = set_field(path, mapping({"maxRestarts": restarts, "rules": f"[{rule}]"}))
    limit = set_field(pointer_below(path, "/maxRestarts"), restarts)
    rules = "object.spec.failurePolicy.?rules"
    has_it = f'{rules}.orValue([]).exists(r, r.?name.orValue("") == {text(EVICTIONS)})'
    first, only = (
        set_field(pointer_below(path, "/rules/0"), rule),
        set_field(pointer_below(path, "/rules"), f"[{rule}]"),
    )
    added = f"({has_it} ? [] : {rules}.hasValue() ? [{first}] : [{only}])"
    return f"(has(object.spec.failurePolicy) ? [{limit}] + {added} : [{whole}])"


def _original_values() -> str:
    spec = "variables.items[i].template.spec"
    of_job = json_object(
        {
            "nodeSelector": json_texts("variables.specs[i].?nodeSelector"),
            "restartPolicy": json_text("variables.specs[i].?restartPolicy"),
            "backoffLimit": json_plain(f"{spec}.?backoffLimit"),
        }
    )
    each = json_of_each("variables.following", "variables.items[i].name", of_job)
    return json_object(
        {
            "maxRestarts": json_plain("object.?spec.?failurePolicy.?maxRestarts"),
            "replicatedJobs": f"optional.of({each})",
        }
    )
