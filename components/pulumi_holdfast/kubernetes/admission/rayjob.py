"""Admission of RayJobs: the patches that let a RayJob follow the ladder of its namespace, and the tokens of Ray."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.kubernetes.admission.expressions import text
from pulumi_holdfast.kubernetes.admission.job_expressions import JobKind
from pulumi_holdfast.kubernetes.admission.job_patches import (
    annotation_patches,
    json_object,
    json_of_each,
    json_plain,
    json_texts,
    label_patches,
    only_if,
    pointer_below,
    remove_spot_selectors,
    restore_annotations,
    restore_tier,
    select_tier,
    set_field,
    start_pool,
)
from pulumi_holdfast.kubernetes.kubernetes_object import in_training_namespaces, resource_rule
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.ladder.ladder import Failures
from pulumi_holdfast.ladder.operators import KEEPING_CLUSTER, KeepsCluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_holdfast.kubernetes.admission.rules import NodeSelection
    from pulumi_holdfast.ladder.json import Json, JsonValue

#: More than the longest ladder can count; KubeRay adds one to it in 32 bits.
MOST_RETRIES: Final = 1_000_000


#: Versions of Ray with tokens, 2.52 and later, as KubeRay reads them: it refuses tokens for others.
_WITH_TOKENS: Final = r"^v?(2[.](5[2-9]|[6-9][0-9]|[1-9][0-9]{2,})|([3-9]|[1-9][0-9]+)[.][0-9]+)([.][0-9]+)*$"


@dataclass(frozen=True, kw_only=True)
class _Pod:
    """A pod other than a worker: its optional specification and the JSON pointer to it."""

    spec: str
    path: str


_HEAD: Final = _Pod(
    spec="object.?spec.?rayClusterSpec.?headGroupSpec.?template.?spec",
    path="/spec/rayClusterSpec/headGroupSpec/template/spec",
)
_SUBMITTER: Final = _Pod(
    spec="object.?spec.?submitterPodTemplate.?spec", path="/spec/submitterPodTemplate/spec"
)
_OTHER_PODS: Final = (_HEAD, _SUBMITTER)


def _is_set(field: KeepsCluster) -> str:
    value = f"dyn(object).?spec{''.join(f'.?{step}' for step in field.path)}"
    if field.value is not None:
        return f'{value}.orValue("") == {text(field.value)}'
    return f"{value}.hasValue() && size({value}.value()) > 0"


RAYJOB: Final = JobKind(
    group="ray.io",
    version="v1",
    resource="rayjobs",
    templates=("rayClusterSpec", "workerGroupSpecs"),
    name="groupName",
    pod_template=("template",),
    controller="ray.io/kuberay-operator",
    unstoppable={each.title: _is_set(each) for each in KEEPING_CLUSTER},
)


def rayjob_patches(capacity: Sequence[NodeSelection]) -> str:
    """Return the patches for a new RayJob; `capacity` are the labels with which pods select spot.

    The workers follow the ladder. The head and the submitter stay off spot: without the head the job is lost,
    and the end of the submitter looks like the end of the job.
    """
    template = pointer_below(RAYJOB.path_of("i"), RAYJOB.template_path)
    metadata = f"{RAYJOB.template_of('variables.items[i]')}.?metadata"
    of_each = f"{label_patches(template, metadata)} + {select_tier(RAYJOB, capacity, start_pool())}"
    done = " + ".join(
        [
            label_patches('""', "optional.of(object.metadata)"),
            annotation_patches(_original_values()),
            _shutdown_when_finished(),
            _retries(),
            *(_keep_off_spot(pod, capacity, "variables.spotPools") for pod in _OTHER_PODS),
            f"variables.following.map(i, {of_each}).flatten()",
        ]
    )
    return f"size(variables.following) == 0 ? [] : ({done})"


def _retries() -> str:
    """Raise KubeRay's retry limit if any failure moves the job. Interactive jobs cannot have one."""
    any_failure = f"params.spec.?failures.orValue({text(Failures.ANY)}) == {text(Failures.ANY)}"
    own = f"object.?spec.?backoffLimit.orValue(0) < {MOST_RETRIES}"
    retried = 'object.?spec.?submissionMode.orValue("") != "InteractiveMode"'
    return only_if(
        f"{any_failure} && {own} && {retried}", set_field(text("/spec/backoffLimit"), str(MOST_RETRIES))
    )


def rayjob_repairs(capacity: Sequence[NodeSelection]) -> str:
    """Return the patches for an adjusted RayJob over which its manifest is applied again."""
    before = "oldObject.spec.?backoffLimit.orValue(0)"
    raised = f"{before} >= {MOST_RETRIES} && object.?spec.?backoffLimit.orValue(0) < {MOST_RETRIES}"
    done = " + ".join(
        [
            label_patches('""', "optional.of(object.metadata)"),
            restore_annotations(),
            _shutdown_when_finished(),
            only_if(raised, set_field(text("/spec/backoffLimit"), before)),
            *(_keep_off_spot(pod, capacity, _removed_pool(pod)) for pod in _OTHER_PODS),
            f"variables.following.map(i, {restore_tier(RAYJOB, capacity)}).flatten()",
        ]
    )
    return f"size(variables.following) == 0 ? [] : ({done})"


def _shutdown_when_finished() -> str:
    """Without this field KubeRay rejects the suspension of the job."""
    return f"[{set_field(text('/spec/shutdownAfterJobFinishes'), 'true')}]"


def _removed_pool(pod: _Pod) -> str:
    """The pool that the pod selects by name and did not select before: admission had removed it."""
    selector = f"{pod.spec}.?nodeSelector[?{text(POOL)}]"
    had = selector.replace("object", "oldObject", 1)
    return f"({had}.hasValue() || !{selector}.hasValue() ? [] : [string({selector}.value())])"


def _keep_off_spot(pod: _Pod, capacity: Sequence[NodeSelection], pools: str) -> str:
    spec = f"{pod.spec}.orValue({{}})"
    is_spot = f'{pod.spec}.?nodeSelector[?{text(POOL)}].orValue("") in {pools}'
    return f"(variables.queued ? [] : {remove_spot_selectors(spec, text(pod.path), capacity, is_spot)})"


def _original_values() -> str:
    of_group = json_object({"nodeSelector": json_texts("variables.specs[i].?nodeSelector")})
    each = json_of_each("variables.following", "variables.items[i].groupName", of_group)
    return json_object(
        {
            "backoffLimit": json_plain("object.?spec.?backoffLimit"),
            "shutdownAfterJobFinishes": json_plain("object.?spec.?shutdownAfterJobFinishes"),
            "headNodeSelector": json_texts(f"{_HEAD.spec}.?nodeSelector"),
            "submitterNodeSelector": json_texts(f"{_SUBMITTER.spec}.?nodeSelector"),
            "workerGroupSpecs": f"optional.of({each})",
        }
    )


def ray_tokens_spec() -> Json:
    """Return the policy that lets Ray ask for a token, unless its author decides it: its dashboard runs any code that it is sent.

    KubeRay makes the token, a Secret, and gives it to the containers of Ray and to the submitter.
    """
    mutations: list[JsonValue] = []
    for resource, at in (("rayjobs", ("spec", "rayClusterSpec")), ("rayclusters", ("spec",))):
        spec = "dyn(object)" + "".join(f".?{each}" for each in at)
        asked = (
            f"request.resource.resource == {text(resource)} && {spec}.hasValue() && !{spec}.?authOptions.hasValue() && "
            f"{spec}.?rayVersion.orValue('').matches({text(_WITH_TOKENS)})"
        )
        path = text("/" + "/".join((*at, "authOptions")))
        patch = f'({asked} ? [JSONPatch{{op: "add", path: {path}, value: {{"mode": "token"}}}}] : [])'
        mutations.append({"patchType": "JSONPatch", "jsonPatch": {"expression": patch}})
    return {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": in_training_namespaces(
            resource_rule("ray.io", "rayjobs", "rayclusters", on=["CREATE"], version="v1")
        ),
        "mutations": mutations,
    }
