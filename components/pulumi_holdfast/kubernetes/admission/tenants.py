"""Bounds of training namespaces: what their pods, Services and jobs may be, whichever account creates them.

Every object of a tenant may be hostile. The policies here refuse what would reach beyond its namespace: a pod on another
ladder's pools, a priority above the namespace's own, a Service that the internet reaches, a record of the fallback controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from pulumi import ComponentResource, Output, ResourceOptions

from pulumi_holdfast.kubernetes.admission.expressions import CREATES, affinity_terms, text, texts
from pulumi_holdfast.kubernetes.admission.job_expressions import HERE
from pulumi_holdfast.kubernetes.admission.rayjob import ray_tokens_spec
from pulumi_holdfast.kubernetes.fallback_policy import API_VERSION, KIND
from pulumi_holdfast.kubernetes.kubernetes_object import (
    admission_policy,
    in_training_namespaces,
    refusals,
    resource_rule,
)
from pulumi_holdfast.kubernetes.storage import NETWORK_FILE_SYSTEMS
from pulumi_holdfast.ladder.labels import (
    AUTHORS_ANNOTATIONS,
    HIGHEST_PRIORITY,
    LADDER,
    OF_LADDER,
    POOL,
    RECORDS_PREFIX,
    RESERVED_FOR,
)
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT, JOBSET_ACCOUNT, KUBERAY_ACCOUNT
from pulumi_holdfast.ladder.taints import SYSTEM as SYSTEM_TAINT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulumi import Input

    from pulumi_holdfast.ladder.json import Json

#: The names of the policies and of their bindings.
PODS: Final = "training-pods"
POOLS: Final = "training-pools"
INSIDE: Final = "training-inside"
RECORDS: Final = "training-records"
RAY_TOKENS: Final = "training-ray-tokens"

#: The volume types of the Pod Security Standard `restricted`.
_VOLUMES: Final = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
)

#: How the keys of taints start that control planes have, and nodes without their network policies, or that Karpenter has not set up.
_SYSTEM_TAINTS: Final = ("node-role.kubernetes.io/", "node.cilium.io/", "karpenter.sh/unregistered")

#: Kubernetes' account that creates the pods of Jobs.
_JOB_CONTROLLER: Final = "system:serviceaccount:kube-system:job-controller"

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_POD_AFFINITIES: Final = ("podAffinity", "podAntiAffinity")

_RESOURCE: Final = "request.resource.resource"
_WRITES: Final = ("CREATE", "UPDATE")


def pods_spec() -> Json:
    """Return the policy for pods, also for updates, which may add tolerations.

    It needs no ladder: the finalizers of pods are removed after the ladder is deleted.
    """
    added = f"object.spec.?tolerations.orValue([]).filter(t, {CREATES} || !(t in oldObject.spec.?tolerations.orValue([])))"
    key = "t.?key.orValue('')"
    system = f"{key} == {text(SYSTEM_TAINT.key)} || {texts(_SYSTEM_TAINTS)}.exists(p, {key}.startsWith(p))"
    creators = (_JOB_CONTROLLER, KUBERAY_ACCOUNT, CONTROLLER_ACCOUNT)
    own = f"request.userInfo.username in {texts(creators)} && t.?operator.orValue('Equal') == 'Equal'"
    highest = f"int(namespaceObject.metadata.?annotations[?{text(HIGHEST_PRIORITY)}].orValue('0'))"
    inside = " && ".join(
        expression
        for kind in _POD_AFFINITIES
        for affinity in [f"object.spec.?affinity.?{kind}"]
        for expression in (
            f"{affinity}.?{_REQUIRED}.orValue([]).all(t, {_in_namespace('t')})",
            (
                f"{affinity}.?preferredDuringSchedulingIgnoredDuringExecution.orValue([])"
                f".all(w, {_in_namespace('w.podAffinityTerm')})"
            ),
        )
    )
    volume = " || ".join(f"has(v.{each})" for each in _VOLUMES)
    inline = f"v.?csi.?driver.orValue('') in {texts(NETWORK_FILE_SYSTEMS)}"
    return {
        **_constraints(resource_rule("", "pods", on=_WRITES)),
        "variables": [{"name": "added", "expression": added}],
        "validations": refusals(
            (
                f"variables.added.all(t, {key} != '')",
                "a toleration without a key tolerates every taint: name the key of the taint",
            ),
            (
                f"!variables.added.exists(t, {system})",
                "system nodes, and nodes that are not ready, are not for training pods: remove the toleration of their taint",
            ),
            (
                f"variables.added.all(t, {key} != {text(RESERVED_FOR)} || ({own}))",
                f"only the fallback controller lets a job's pods tolerate {RESERVED_FOR}: remove the toleration",
            ),
            (
                f"!({CREATES}) || object.spec.?nodeName.orValue('') == ''",
                "spec.nodeName bypasses the scheduler: remove it, and select a pool of the ladder",
            ),
            (
                f"!({CREATES}) || object.spec.?schedulerName.orValue('default-scheduler') == 'default-scheduler'",
                "spec.schedulerName names another scheduler than the cluster's: remove it",
            ),
            (
                f"!({CREATES}) || object.spec.?priority.orValue(0) <= {highest}",
                "the priority class is above the highest of the namespace: remove spec.priorityClassName, or name a lower one",
            ),
            (
                f"!({CREATES}) || object.spec.?volumes.orValue([]).all(v, {volume})",
                f"a volume has a type that is not allowed here: use one of {', '.join(_VOLUMES)}",
            ),
            (
                f"!({CREATES}) || object.spec.?volumes.orValue([]).all(v, !({inline}))",
                "a csi volume of this driver may be the file system of another namespace: mount a claim of this one",
            ),
            (
                f"!({CREATES}) || ({inside})",
                "an affinity to pods of other namespaces would keep their pods away: remove namespaces and namespaceSelector",
            ),
        ),
    }


def _in_namespace(term: str) -> str:
    return f"!has({term}.namespaceSelector) && {term}.?namespaces.orValue([]).all(n, n == request.namespace)"


def _allowed(defaults: Sequence[str]) -> Json:
    """Return the variable for the pools of the ladder that are in this cluster, and the default pools."""
    pools = f"params.spec.tiers.filter(t, {HERE}).map(t, t.pool) + {texts([*defaults, OF_LADDER])}"
    return {"name": "pools", "expression": pools}


def _bounded(term: str) -> str:
    """Return whether a term of a required node affinity allows only pools of the namespace."""
    return (
        f"{term}.?matchExpressions.orValue([]).exists(e, e.key == {text(POOL)} && e.operator == 'In' && "
        "e.?values.orValue([]).all(v, v in variables.pools))"
    )


def pools_spec(defaults: Sequence[str]) -> Json:
    """Return the policy that refuses pods outside the ladder's pools and the default pools `defaults`."""
    listed = f"variables.pools.filter(p, p != {text(OF_LADDER)}).join(', ')"
    terms = affinity_terms("object.spec")
    return {
        **_ladder_parameter(),
        **_constraints(resource_rule("", "pods", on=["CREATE"])),
        "variables": [_allowed(defaults)],
        "validations": [
            {
                "expression": f"object.spec.?nodeSelector[?{text(POOL)}].orValue({text(OF_LADDER)}) in variables.pools",
                "message": "the pod selects a pool that is not on the ladder of its namespace",
                "messageExpression": f"'the pod selects a pool that is not on the ladder of its namespace: select one of ' + {listed}",
                "reason": "Forbidden",
            },
            *refusals(
                (
                    f"size({terms}) > 0 && {terms}.all(t, {_bounded('t')})",
                    "the pod may run outside the pools of its namespace: leave the required node affinity that admission adds",
                )
            ),
        ],
    }


def pools_patches(defaults: Sequence[str]) -> Json:
    """Return the policy that adds to each pod the required node affinity for the pools of its namespace.

    It also drops the other namespaces of required pod affinities, which JobSet adds for an exclusive topology.
    """
    terms, path = affinity_terms("object.spec"), f"/spec/affinity/nodeAffinity/{_REQUIRED}"
    bound = f'{{"key": dyn({text(POOL)}), "operator": dyn("In"), "values": dyn(variables.pools)}}'
    whole = f'{{"nodeSelectorTerms": [{{"matchExpressions": [{bound}]}}]}}'
    places = (
        (
            "!object.spec.?affinity.hasValue()",
            "/spec/affinity",
            f'{{"nodeAffinity": {{"{_REQUIRED}": {whole}}}}}',
        ),
        (
            "!object.spec.?affinity.?nodeAffinity.hasValue()",
            "/spec/affinity/nodeAffinity",
            f'{{"{_REQUIRED}": {whole}}}',
        ),
        (f"size({terms}) == 0", path, whole),
    )
    created = "".join(
        f'{condition} ? [JSONPatch{{op: "add", path: {text(at)}, value: {value}}}] : '
        for condition, at, value in places
    )
    of_term = f'{text(f"{path}/nodeSelectorTerms/")} + string(i) + "/matchExpressions'
    each = (
        f"has({terms}[i].matchExpressions) "
        f'? JSONPatch{{op: "add", path: {of_term}/-", value: {bound}}} '
        f': JSONPatch{{op: "add", path: {of_term}", value: [{bound}]}}'
    )
    unbounded = f"lists.range(size({terms})).filter(i, !{_bounded(f'{terms}[i]')})"
    mutations = [f"{created}{unbounded}.map(i, {each})", *map(_own_namespace, _POD_AFFINITIES)]
    return {
        **_ladder_parameter(),
        **_constraints(resource_rule("", "pods", on=["CREATE"])),
        "reinvocationPolicy": "IfNeeded",
        "variables": [_allowed(defaults)],
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}} for expression in mutations
        ],
    }


def _own_namespace(kind: str) -> str:
    terms = f"object.spec.?affinity.?{kind}.?{_REQUIRED}.orValue([])"
    path = f'{text(f"/spec/affinity/{kind}/{_REQUIRED}/")} + string(i) + "/namespaceSelector"'
    return (
        f"lists.range(size({terms})).filter(i, has({terms}[i].namespaceSelector))"
        f'.map(i, JSONPatch{{op: "remove", path: {path}}})'
    )


def inside_spec() -> Json:
    """Return the policy that keeps Services inside the namespace, also those that KubeRay would make of a RayJob.

    An ExternalName would send KubeRay, which starts jobs at the Service of a Ray head, to the head of another namespace.
    """
    new, old = "dyn(object)", "dyn(oldObject)"
    cluster = f"({_RESOURCE} == 'rayjobs' ? {new}.?spec.?rayClusterSpec : {new}.?spec)"
    head = f"{cluster}.?headGroupSpec"
    same = f"{_RESOURCE} == 'services' && !({CREATES}) && {new}.spec == {old}.spec"
    return {
        **_constraints(
            resource_rule("", "services", on=_WRITES),
            resource_rule("", "services/status", on=["UPDATE"]),
            resource_rule("ray.io", "rayjobs", on=_WRITES),
            resource_rule("ray.io", "rayclusters", on=_WRITES),
            *(
                resource_rule(group, "*", on=["CREATE"])
                for group in ("gateway.networking.k8s.io", "extensions", "route.openshift.io")
            ),
            resource_rule("networking.k8s.io", "ingresses", on=["CREATE"]),
        ),
        "validations": refusals(
            (
                f"{_RESOURCE} in ['services', 'rayjobs', 'rayclusters']",
                "training namespaces are not reached from outside the cluster: remove the Ingress, Gateway or Route",
            ),
            (
                f"{_RESOURCE} != 'services' || ({same}) || ({_is_inside(f'{new}.?spec', 'type')})",
                "a Service of a training namespace stays inside the cluster: set type ClusterIP and no externalIPs",
            ),
            (
                f"{_RESOURCE} != 'services' || size({new}.?status.?loadBalancer.?ingress.orValue([])) == 0",
                "a Service of a training namespace has no load balancer: leave status.loadBalancer empty",
            ),
            (
                (
                    f"!({_RESOURCE} in ['rayjobs', 'rayclusters']) || ({_is_inside(head, 'serviceType')} && "
                    f"{_is_inside(f'{head}.?headService.?spec', 'type')} && !{head}.?enableIngress.orValue(false))"
                ),
                "the Ray head stays inside the cluster: set serviceType ClusterIP, no externalIPs and no enableIngress",
            ),
        ),
    }


def _is_inside(spec: str, field: str) -> str:
    return (
        f"{spec}.?{field}.orValue('ClusterIP') == 'ClusterIP' && size({spec}.?externalIPs.orValue([])) == 0"
    )


def records_spec(accepted: Sequence[str] = ()) -> Json:
    """Return the policy for the records of the fallback controller on jobs, and for tolerations of its reservations.

    `accepted` are the user names of the controllers of other clusters, which write the records of their copies.
    """
    writers = texts([CONTROLLER_ACCOUNT, *accepted])
    recorded = f"k.startsWith({text(RECORDS_PREFIX)}) && !(k in {texts(sorted(AUTHORS_ANNOTATIONS))})"
    new = "object.metadata.?annotations.orValue({})"
    old = "(oldObject == null ? {} : oldObject.metadata.?annotations.orValue({}))"
    changed = (
        f"({new}.map(k, k) + {old}.map(k, k)).filter(k, {recorded} && {new}[?k] != {old}[?k]).distinct()"
    )
    makers = (
        f"{_RESOURCE} == 'jobs' ? {texts((JOBSET_ACCOUNT, KUBERAY_ACCOUNT, CONTROLLER_ACCOUNT))} : "
        f"{_RESOURCE} == 'rayclusters' ? {texts((KUBERAY_ACCOUNT,))} : {writers}"
    )
    return {
        **_constraints(
            resource_rule("jobset.x-k8s.io", "jobsets", on=_WRITES),
            *(
                resource_rule("ray.io", each, on=_WRITES)
                for each in ("rayjobs", "rayclusters", "rayservices")
            ),
            resource_rule("batch", "jobs", on=_WRITES),
        ),
        "variables": [
            {"name": "isJob", "expression": f"{_RESOURCE} in ['jobsets', 'rayjobs']"},
            {"name": "changed", "expression": f"variables.isJob ? {changed} : []"},
            {"name": "reserved", "expression": _reservations("dyn(object)")},
            {
                "name": "reservedBefore",
                "expression": f"oldObject == null ? [] : {_reservations('dyn(oldObject)')}",
            },
        ],
        "validations": [
            {
                "expression": f"request.userInfo.username in {writers} || size(variables.changed) == 0",
                "message": "only the fallback controller writes its records on jobs: remove these annotations from the manifest",
                "messageExpression": "'only the fallback controller writes its records on jobs: leave the annotations ' + "
                "variables.changed.join(', ') + ' as they are, and out of the manifest of a new job'",
                "reason": "Forbidden",
            },
            *refusals(
                (
                    (
                        f"request.userInfo.username in ({makers}) || "
                        "variables.reserved.all(t, t in variables.reservedBefore)"
                    ),
                    f"only the fallback controller lets a job's pods tolerate {RESERVED_FOR}: remove the toleration",
                )
            ),
        ],
    }


def _reservations(job: str) -> str:
    """Return the tolerations of reservations in all pod templates of a job."""
    templates = (
        f"{_RESOURCE} == 'jobs' ? [{job}.?spec.?template] : "
        f"{_RESOURCE} == 'jobsets' ? {job}.?spec.?replicatedJobs.orValue([]).map(r, r.?template.?spec.?template) : "
        f"{_RESOURCE} == 'rayjobs' ? [{job}.?spec.?submitterPodTemplate] + {_of_cluster(f'{job}.?spec.?rayClusterSpec')} : "
        f"{_RESOURCE} == 'rayservices' ? {_of_cluster(f'{job}.?spec.?rayClusterConfig')} : {_of_cluster(f'{job}.?spec')}"
    )
    # A toleration without a key tolerates reservations, too, and the policy for pods refuses it.
    return (
        f"({templates}).map(t, t.?spec.?tolerations.orValue([]))"
        f".flatten().filter(t, t.?key.orValue('') == {text(RESERVED_FOR)})"
    )


def _of_cluster(spec: str) -> str:
    return f"[{spec}.?headGroupSpec.?template] + {spec}.?workerGroupSpecs.orValue([]).map(g, g.?template)"


def _ladder_parameter() -> Json:
    return {"paramKind": {"apiVersion": API_VERSION, "kind": KIND}}


def _constraints(*rules: Json) -> Json:
    return {"failurePolicy": "Fail", "matchConstraints": in_training_namespaces(*rules)}


def binding_spec(name: str, *, ladder: bool = False, denies: bool = True) -> Json:
    """Return the binding of a policy; `ladder`: it reads the ladder of the namespace, and refuses pods of one without."""
    return {
        "policyName": name,
        **({"paramRef": {"name": LADDER, "parameterNotFoundAction": "Deny"}} if ladder else {}),
        **({"validationActions": ["Deny"]} if denies else {}),
    }


class TenantBounds(ComponentResource):
    """The bounds of training namespaces (`holdfast:index:TenantBounds`).

    Creates ValidatingAdmissionPolicies with their bindings for pods (`training-pods`), their pools (`training-pools`, beside a
    MutatingAdmissionPolicy of this name), Services (`training-inside`) and records on jobs (`training-records`), and the
    MutatingAdmissionPolicy `training-ray-tokens` for the tokens of Ray. They apply to
    namespaces with the label `holdfast.dev/training: "true"`. `defaults` are the pools of pods that select none, and `accepted` the
    user names of the controllers of other clusters whose jobs may run here. The policies read FallbackPolicies: depend on
    their definition.
    """

    def __init__(
        self,
        name: str,
        opts: ResourceOptions | None = None,
        *,
        defaults: Sequence[str],
        accepted: Sequence[Input[str]] = (),
    ) -> None:
        super().__init__("holdfast:index:TenantBounds", name, None, opts)
        records: Input[Json] = (
            Output.all(*accepted).apply(lambda known: records_spec(cast("list[str]", known)))
            if accepted
            else records_spec()
        )
        validating: Iterable[tuple[str, Input[Json]]] = (
            (PODS, pods_spec()),
            (POOLS, pools_spec(defaults)),
            (INSIDE, inside_spec()),
            (RECORDS, records),
        )
        for policy, spec in validating:
            binding = binding_spec(policy, ladder=policy == POOLS)
            admission_policy(
                f"{name}-{policy}", "ValidatingAdmissionPolicy", {"name": policy}, spec, binding, self
            )
        admission_policy(
            f"{name}-{POOLS}-added",
            "MutatingAdmissionPolicy",
            {"name": POOLS},
            pools_patches(defaults),
            binding_spec(POOLS, ladder=True, denies=False),
            self,
        )
        admission_policy(
            f"{name}-{RAY_TOKENS}",
            "MutatingAdmissionPolicy",
            {"name": RAY_TOKENS},
            ray_tokens_spec(),
            binding_spec(RAY_TOKENS, denies=False),
            self,
        )
        self.register_outputs({})
