"""The admission policy that limits what the fallback controller's service account may change.

Its permissions (`access.py`) say which kinds it may patch; Kubernetes cannot limit them to fields. This policy refuses a write
of the account that changes more than the controller does: the image or command of a job, a taint that is not a reservation,
a label of a node or job, a pod that is no placeholder.

A policy sees one object, and must hold for each of its parameters. So two mutating policies ask whether a new RayJob has a
predecessor: one removes the annotation PREDECESSOR, the other adds it if one of the namespace's RayJobs has failed, asked for a
successor, and has this specification. They come in any order; only the second is invoked again, so it has the last word.

It does not bound everything that a stolen token can do. Jobs can be suspended and moved, their pods deleted, failed RayJobs that ask
for a successor run again, and nodes reserved. `docs/tenants.md` has the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.admission.expressions import text, texts
from pulumi_holdfast.kubernetes.admission.job_patches import (
    as_json_patches,
    pointer_step,
    remove_field,
    set_field,
)
from pulumi_holdfast.kubernetes.kubernetes_object import admission_policy, refusals, resource_rule
from pulumi_holdfast.ladder.labels import (
    CAPACITY_KEYS,
    CHECKPOINT_REQUESTED,
    CONTROLLER,
    EVENT_COMPONENT,
    POOL,
    PREDECESSOR,
    RECREATE,
    RESERVATION_NAMESPACE,
    RESERVATION_PRIORITY_CLASS,
    RESERVED_FOR,
    STATE,
    SUCCESSOR,
    SUCCESSOR_OF,
    SUSPENDED_FOR,
    TIER,
    TRANSFER,
)
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pulumi_holdfast.ladder.json import Json

#: The name of the policy and of its binding.
NAME: Final = f"{CONTROLLER}-writes"

#: What the controller writes into a job's metadata.
JOB_ANNOTATIONS: Final = (STATE, SUSPENDED_FOR, CHECKPOINT_REQUESTED, SUCCESSOR)
JOB_LABELS: Final[Sequence[str]] = (TIER,)

#: The longest part of a RayJob's name that its successors keep.
LONGEST_SUCCESSOR_STEM: Final = 38

# What the API server sets in each update.
_SERVER_FIELDS: Final = ("generation", "managedFields", "resourceVersion")

_RESERVATION_EFFECT: Final = "NoSchedule"

_BY_CONTROLLER: Final[Json] = {
    "name": "controller",
    "expression": f"request.userInfo.username == {text(CONTROLLER_ACCOUNT)}",
}


def policy_spec(placeholder_image: str, *, transfers: bool = False) -> Json:
    """Return the specification of the policy; `placeholder_image` is the only image that placeholders run.

    `transfers`: the controller may transfer jobs to other clusters.
    """
    validations = (
        (f"!({applies}) || ({allowed})", message)
        for applies, allowed, message in _validations(placeholder_image, transfers=transfers)
    )
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                resource_rule("", "pods", "pods/status", "events", on=["CREATE", "UPDATE"], version="v1"),
                resource_rule("", "nodes", on=["UPDATE"], version="v1"),
                resource_rule("batch", "jobs", on=["CREATE", "DELETE"], version="v1"),
                resource_rule("jobset.x-k8s.io", "jobsets", on=["UPDATE"]),
                resource_rule("ray.io", "rayjobs", on=["CREATE", "UPDATE"]),
                *(
                    resource_rule(group, f"{resource}/status", on=["UPDATE"])
                    for group, resource in (("jobset.x-k8s.io", "jobsets"), ("ray.io", "rayjobs"))
                    if transfers
                ),
            ]
        },
        "matchConditions": [_BY_CONTROLLER],
        "variables": [
            {"name": "new", "expression": "dyn(object)"},
            {"name": "old", "expression": "dyn(oldObject)"},
        ],
        "validations": refusals(*validations),
    }


def binding_spec(name: str = NAME) -> Json:
    """Return the specification of a policy's binding: violations are refused and recorded in the audit log."""
    return {"policyName": name, "validationActions": ["Deny", "Audit"]}


#: Nothing of a dry run is stored, and no controller sees it.
_DRY_RUN: Final = "request.?dryRun.orValue(false)"
_NEW: Final = "variables.new"
_OLD: Final = "variables.old"


def _validations(placeholder_image: str, *, transfers: bool) -> Iterable[tuple[str, str, str]]:
    """Yield when a validation applies, what is allowed, and the message otherwise."""
    yield (
        _is("nodes"),
        _all(
            same(without("", "metadata", "spec", "status"), without(".metadata", *_SERVER_FIELDS, "labels")),
            same(_without_key("labels", RESERVED_FOR), without(".spec", "taints"), _foreign_taints()),
            _reservation(),
        ),
        "the controller changes a node only by the taint and the label of a reservation, in a pool",
    )
    yield (
        _is("pods", "UPDATE"),
        _all(
            same(without("", "metadata", "status"), without(".metadata", *_SERVER_FIELDS, "annotations")),
            same(_without_key("annotations", CHECKPOINT_REQUESTED)),
        ),
        "the controller changes a pod only by the request for a checkpoint",
    )
    yield (
        _is("pods/status"),
        _all(
            same(without("", "metadata", "status"), without(".metadata", *_SERVER_FIELDS)),
            same(
                without(".status", "phase", "conditions", "observedGeneration"),
                _conditions_but("DisruptionTarget"),
            ),
            f'{_NEW}.status.phase == "Failed"',
        ),
        "the controller changes a pod's status only to end it, with the condition DisruptionTarget",
    )
    yield (
        _is("pods", "CREATE"),
        f"{_DRY_RUN} || ({_placeholder(placeholder_image)})",
        f"the controller creates only placeholders in {RESERVATION_NAMESPACE}, and other pods in dry runs",
    )
    yield (
        _is("jobsets"),
        _all(_same_job_metadata(transfers=transfers), same(*_jobset_spec())),
        "the controller changes a JobSet only by its suspension, pool, reservation and state",
    )
    if transfers:
        yield _ends_as_its_copy("jobsets", ["conditions", "terminalState"])
        yield _ends_as_its_copy("rayjobs", ["endTime", "jobDeploymentStatus", "jobStatus", "message"])
    yield (
        _is("rayjobs", "UPDATE"),
        _all(_same_job_metadata(transfers=transfers), same(*_rayjob_spec())),
        "the controller changes a RayJob only by its suspension, pool, reservation and state",
    )
    yield (
        _is("rayjobs", "CREATE"),
        _all(
            f'{_annotation(RECREATE)} == "true"',
            f'{_annotation(STATE)} != ""',
            f'{_annotation(SUCCESSOR_OF)} != ""',
            f'{_annotation(PREDECESSOR)} != ""',
            _names_successor(),
        ),
        "the controller creates only the successor of a failed RayJob that asks for one, with its specification",
    )
    yield (_is("jobs", "CREATE"), _DRY_RUN, "the controller creates Jobs in dry runs only")
    yield (
        _is("jobs", "DELETE"),
        _all(
            f"{_OLD}.spec.?suspend.orValue(false)",
            f'{_OLD}.metadata.?ownerReferences.orValue([]).exists(o, o.kind == "JobSet" && o.?controller.orValue(false))',
        ),
        "the controller deletes only suspended Jobs of a JobSet",
    )
    yield (
        _is("events", "CREATE"),
        _all(
            f'{_NEW}.?source.?component.orValue("") == {text(EVENT_COMPONENT)}',
            f"{_NEW}.involvedObject.?namespace.orValue({text('')}) == {_NEW}.metadata.namespace",
        ),
        "the controller writes only its own Events",
    )
    yield (
        _is("events", "UPDATE"),
        _all(
            f'{_OLD}.?source.?component.orValue("") == {text(EVENT_COMPONENT)}',
            same(without("", "metadata", "count", "lastTimestamp"), without(".metadata", *_SERVER_FIELDS)),
        ),
        "the controller changes only the count of its own Events",
    )


def _ends_as_its_copy(resource: str, fields: Sequence[str]) -> tuple[str, str, str]:
    """Return the validation of a status that is written by its `fields` while a copy of the job may exist."""
    return (
        _is(f"{resource}/status"),
        _all(
            same(without("", "metadata", "status"), without(".metadata", *_SERVER_FIELDS)),
            same(rest("OBJECT.?status.orValue({})", fields)),
            same(_conditions_but("Completed", "Failed")),
            f"{_NEW}.metadata.?finalizers.orValue([]).exists(f, f == {text(TRANSFER)})",
        ),
        "the controller changes a job's status only to end it as its copy in another cluster has ended",
    )


def _is(resource: str, operation: str | None = None) -> str:
    """Return whether the request is for a resource, or for a subresource such as `pods/status`."""
    kind, _, subresource = resource.partition("/")
    conditions = [
        f"request.resource.resource == {text(kind)}",
        f"request.?subResource.orValue({text('')}) == {text(subresource)}",
    ]
    if operation is not None:
        conditions.append(f"request.operation == {text(operation)}")
    return _all(*conditions)


def _all(*conditions: str) -> str:
    return " && ".join(f"({each})" for each in conditions)


def same(*parts: str, new: str = _NEW, old: str = _OLD) -> str:
    """Return whether parts of the object, as expressions over `OBJECT`, are those of the old object."""
    return _all(*(f"{part.replace('OBJECT', new)} == {part.replace('OBJECT', old)}" for part in parts))


def without(path: str, *keys: str) -> str:
    """Return a map of the object without some of its keys."""
    return rest(f"OBJECT{path}", keys)


def rest(value: str, keys: Iterable[str]) -> str:
    """Return a map without some of its keys."""
    return f"{value}.transformMap(k, v, !(k in {texts(sorted(keys))}), v)"


def _without_key(marks: str, *keys: str) -> str:
    """Return the labels or annotations of the object without some keys; none and an empty map are the same."""
    return rest(f"OBJECT.metadata.?{marks}.orValue({{}})", keys)


def _foreign_taints() -> str:
    return f"OBJECT.spec.?taints.orValue([]).filter(t, t.key != {text(RESERVED_FOR)})"


def _reservation() -> str:
    """Return whether the node's reservation is one: of one job, with one taint, not taken from another job, in a pool."""
    mine = f"{_NEW}.spec.?taints.orValue([]).filter(t, t.key == {text(RESERVED_FOR)})"
    theirs = f"{_OLD}.spec.?taints.orValue([]).filter(t, t.key == {text(RESERVED_FOR)})"
    label = f'{_NEW}.metadata.?labels[?{text(RESERVED_FOR)}].orValue("")'
    taint = (
        f"t.effect == {text(_RESERVATION_EFFECT)} && t.?value.orValue({text('')}) == {label} && "
        f"{text(POOL)} in {_NEW}.metadata.labels && {theirs}.all(o, o == t)"
    )
    return f"size({mine}) <= 1 && {mine}.all(t, {taint})"


def _conditions_but(*kinds: str) -> str:
    return f"OBJECT.?status.?conditions.orValue([]).filter(c, !(c.type in {texts(kinds)}))"


def _annotation(key: str) -> str:
    return f'{_NEW}.metadata.?annotations[?{text(key)}].orValue("")'


def _same_job_metadata(*, transfers: bool = False) -> str:
    annotations = (*JOB_ANNOTATIONS, TRANSFER) if transfers else JOB_ANNOTATIONS
    finalizers = f"OBJECT.metadata.?finalizers.orValue([]).filter(f, f != {text(TRANSFER)})"
    return same(
        without("", "metadata", "spec", "status"),
        without(
            ".metadata", *_SERVER_FIELDS, "annotations", "labels", *(["finalizers"] if transfers else [])
        ),
        *([finalizers] if transfers else []),
        _without_key("annotations", *annotations),
        _without_key("labels", *JOB_LABELS),
    )


def _jobset_spec() -> Sequence[str]:
    """Return the parts of a JobSet's spec that stay: all but the suspension and where its templates run."""
    jobs = "OBJECT.spec.replicatedJobs"
    template = "r.template.spec.template"
    return (
        without(".spec", "suspend", "replicatedJobs"),
        f"{jobs}.map(r, {rest('r', ['template'])})",
        f"{jobs}.map(r, {rest('r.template', ['spec'])})",
        f"{jobs}.map(r, {rest('r.template.spec', ['template'])})",
        f"{jobs}.map(r, {rest(template, ['spec'])})",
        *(f"{jobs}.map(r, {part})" for part in _pod_spec(f"{template}.spec")),
    )


def _rayjob_spec() -> Sequence[str]:
    """Return the parts of a RayJob's spec that stay: all but the suspension and where its workers run."""
    groups = "OBJECT.spec.?rayClusterSpec.?workerGroupSpecs.orValue([])"
    return (
        without(".spec", "suspend", "rayClusterSpec"),
        rest("OBJECT.spec.?rayClusterSpec.orValue({})", ["workerGroupSpecs"]),
        f"{groups}.map(r, {rest('r', ['template'])})",
        f"{groups}.map(r, {rest('r.template', ['spec'])})",
        *(f"{groups}.map(r, {part})" for part in _pod_spec("r.template.spec")),
    )


def _pod_spec(spec: str) -> Sequence[str]:
    """Return the parts of a pod template's spec that stay. A reservation that is tolerated is the job's own."""
    tolerations = f"{spec}.?tolerations.orValue([])"
    own = f"t.?key.orValue({text('')}) == {text(RESERVED_FOR)} && t.?value.orValue({text('')}) == OBJECT.metadata.uid"
    return (
        rest(spec, ["nodeSelector", "tolerations"]),
        rest(f"{spec}.?nodeSelector.orValue({{}})", [POOL, *CAPACITY_KEYS]),
        f"{tolerations}.filter(t, !({own}))",
    )


def _names_successor() -> str:
    """Return whether a RayJob's name is that of a successor: the first RayJob's, and part of the uid of the one that failed."""
    first = _annotation(SUCCESSOR_OF)
    stem = f"{first}.substring(0, [size({first}), {LONGEST_SUCCESSOR_STEM}].min())"
    return f"{_NEW}.metadata.name.startsWith({stem} + '-') && {_NEW}.metadata.name.matches('-[0-9a-f]{{8}}$')"


def _has_predecessor() -> str:
    """Return whether a RayJob, `params`, has failed, and the new one is its successor with its specification, wherever it runs."""
    first = f"params.metadata.?annotations[?{text(SUCCESSOR_OF)}].orValue(params.metadata.name)"
    # No job is there yet that could have a reservation of its own.
    parts = (part.replace("OBJECT.metadata.uid", "params.metadata.uid") for part in _rayjob_spec())
    return _all(
        f"{_annotation(SUCCESSOR_OF)} == {first}",
        f"{_NEW}.metadata.name.endsWith({text('-')} + params.metadata.uid.substring(0, 8))",
        f"params.metadata.?annotations[?{text(RECREATE)}].orValue({text('')}) == {text('true')}",
        f"params.?status.?jobDeploymentStatus.orValue({text('')}) in {texts(('Failed', 'ValidationFailed'))}",
        same(*parts, old="params"),
    )


def predecessor_specs() -> Mapping[str, tuple[Json, Json]]:
    """Return the two mutating policies by name, each with its binding: they say in PREDECESSOR whose successor a RayJob is."""
    at = text(f"/metadata/annotations/{pointer_step(PREDECESSOR)}")
    removed = f"({_annotation(PREDECESSOR)} == {text('')} ? [] : [{remove_field(at)}])"
    added = f"({_has_predecessor()} ? [{set_field(at, 'params.metadata.uid')}] : [])"
    each_job: Json = {"paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"}}
    return {
        f"{CONTROLLER}-no-predecessor": (_patch(removed, "Never"), {}),
        f"{CONTROLLER}-predecessor": (
            {"paramKind": {"apiVersion": "ray.io/v1", "kind": "RayJob"}, **_patch(added, "IfNeeded")},
            each_job,
        ),
    }


def _patch(patches: str, again: str) -> Json:
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [resource_rule("ray.io", "rayjobs", on=["CREATE"])]},
        "matchConditions": [_BY_CONTROLLER],
        "reinvocationPolicy": again,
        "variables": [{"name": "new", "expression": "dyn(object)"}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": as_json_patches(patches)}}],
    }


def _placeholder(image: str) -> str:
    """Return whether a pod is a placeholder: it runs the image that does nothing, and nothing else."""
    spec = f"{_NEW}.spec"
    container = f"{spec}.containers[0]"
    return _all(
        f"request.namespace == {text(RESERVATION_NAMESPACE)}",
        f'{_NEW}.metadata.?labels[?{text(RESERVED_FOR)}].orValue("") != ""',
        f"{spec}.?priorityClassName.orValue({text('')}) == {text(RESERVATION_PRIORITY_CLASS)}",
        f"{spec}.?automountServiceAccountToken.orValue(true) == false",
        f"size({spec}.containers) == 1 && !has({spec}.initContainers) && !has({spec}.volumes)",
        f"{container}.image == {text(image)}",
        *(f"!has({container}.{field})" for field in ("command", "args", "env", "envFrom", "volumeMounts")),
    )


class ControllerWritePolicy(ComponentResource):
    """Limits what the fallback controller's service account may change (`holdfast:index:ControllerWritePolicy`).

    Creates a ValidatingAdmissionPolicy and two MutatingAdmissionPolicies with their bindings. `placeholder_image` is the only image that placeholders run.
    `transfers`: jobs may move to other clusters.
    """

    def __init__(
        self,
        name: str,
        opts: ResourceOptions | None = None,
        *,
        placeholder_image: str,
        transfers: bool = False,
    ) -> None:
        super().__init__("holdfast:index:ControllerWritePolicy", name, None, opts)
        spec = policy_spec(placeholder_image, transfers=transfers)
        admission_policy(
            f"{name}-policy", "ValidatingAdmissionPolicy", {"name": NAME}, spec, binding_spec(), self
        )
        for policy, (patch, binding) in predecessor_specs().items():
            admission_policy(
                f"{name}-{policy}",
                "MutatingAdmissionPolicy",
                {"name": policy},
                patch,
                {"policyName": policy, **binding},
                self,
            )
        self.register_outputs({})
