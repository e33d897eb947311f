"""What the accounts of JobSet and KubeRay may do: less than their charts give them.

KubeRay's chart, told its namespaces, makes no ClusterRole; the role for its jobs is bound in each training namespace. JobSet
watches the whole cluster, and its chart has no field for its rights or its priority, so an admission policy replaces the
rules of its ClusterRole and sets the priority class of its pods, and another one keeps what it writes inside the training
namespaces.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.kubernetes.admission.expressions import text, texts
from pulumi_holdfast.kubernetes.kubernetes_object import refusals, resource_rule, rule
from pulumi_holdfast.kubernetes.operators.pod_settings import SYSTEM_PRIORITY_CLASS
from pulumi_holdfast.ladder.labels import TRAINING, TRAINING_VALUE
from pulumi_holdfast.ladder.operators import JOBSET_ACCOUNT, KUBERAY_ACCOUNT, OPERATORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_holdfast.ladder.json import Json

_READ: Final = ("get", "list", "watch")
_OWN: Final = ("create", "delete", "get", "list", "patch", "update", "watch")

#: The ClusterRole of KubeRay that TrainingNamespace binds.
RAY_ROLE: Final = "kuberay-jobs"
RAY_SUBJECT: Final[Json] = {
    "kind": "ServiceAccount",
    "name": "kuberay-operator",
    "namespace": OPERATORS["kuberay-operator"].namespace,
}

_RAY_KINDS: Final = ("rayclusters", "rayjobs", "rayservices")

#: What KubeRay uses for Ray's jobs. It keeps the secrets of a namespace in its cache, also without tokens for Ray.
RAY_RULES: Final[Sequence[Json]] = (
    rule("", ["events"], ["create", "patch", "update"]),
    rule("", ["pods"], [*_OWN, "deletecollection"]),
    rule("", ["services"], _OWN),
    rule("", ["secrets"], ["create", *_READ]),
    rule("batch", ["jobs"], _OWN),
    rule("discovery.k8s.io", ["endpointslices"], _READ),
    rule("ray.io", _RAY_KINDS, _OWN),
    rule("ray.io", [f"{kind}/finalizers" for kind in _RAY_KINDS], ["update"]),
    rule("ray.io", [f"{kind}/status" for kind in _RAY_KINDS], ["get", "patch", "update"]),
    # For the autoscaler of a RayCluster, which gets a role of its own. An account grants only what it may do, so resizing pods is here.
    rule("", ["serviceaccounts"], ["create", *_READ]),
    rule("", ["pods/resize"], ["patch"]),
    rule("rbac.authorization.k8s.io", ["rolebindings", "roles"], ["create", *_READ]),
)

#: The ClusterRole of KubeRay in all namespaces: to end what has its finalizers. A namespace that is deleted loses the binding of RAY_ROLE
#: at any time, and a RayJob that KubeRay then could not update would keep the namespace for good.
RAY_FINALIZERS: Final = "kuberay-finalizers"
RAY_FINALIZER_RULES: Final[Sequence[Json]] = (
    rule("ray.io", _RAY_KINDS, ["patch", "update"]),
    rule("ray.io", [f"{kind}/finalizers" for kind in _RAY_KINDS], ["update"]),
)

#: The resources in the role of an autoscaler.
_AUTOSCALER_RESOURCES: Final = ("pods", "pods/resize", "rayclusters")

#: The ClusterRole and the Deployment that JobSet's chart makes, and its webhook configurations, whose certificates JobSet renews.
JOBSET_ROLE: Final = "jobset-controller"
JOBSET_WEBHOOKS: Final = ("jobset-mutating-webhook-configuration", "jobset-validating-webhook-configuration")

_WEBHOOK_KINDS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")

#: What JobSet uses. Its secrets and its lease have a Role in its own namespace.
JOBSET_RULES: Final[Sequence[Json]] = (
    rule("", ["nodes"], _READ),
    rule("", ["pods"], ["delete", *_READ]),
    rule("", ["persistentvolumeclaims", "services"], ["create", *_READ]),
    rule("", ["events"], ["create", "patch", "update"]),
    rule("events.k8s.io", ["events"], ["create", "patch", "update"]),
    rule("admissionregistration.k8s.io", _WEBHOOK_KINDS, _READ),
    rule("admissionregistration.k8s.io", _WEBHOOK_KINDS, ["update"], JOBSET_WEBHOOKS),
    rule("batch", ["jobs"], _OWN),
    rule("batch", ["jobs/status"], ["get", "patch", "update"]),
    rule("jobset.x-k8s.io", ["jobsets"], ["delete", *_READ, "patch", "update"]),
    rule("jobset.x-k8s.io", ["jobsets/finalizers"], ["update"]),
    rule("jobset.x-k8s.io", ["jobsets/status"], ["get", "patch", "update"]),
)

#: The names of the policies and of their bindings.
JOBSET_ACCESS: Final = "jobset-access"
OPERATOR_WRITES: Final = "operator-writes"


def jobset_access_spec() -> Json:
    """Return the policy that replaces the rules of JobSet's ClusterRole by JOBSET_RULES, and gives its Deployment SYSTEM_PRIORITY_CLASS."""
    rules = f'[JSONPatch{{op: "replace", path: "/rules", value: {json.dumps(JOBSET_RULES)}}}]'
    priority = f'[JSONPatch{{op: "add", path: "/spec/template/spec/priorityClassName", value: {text(SYSTEM_PRIORITY_CLASS)}}}]'
    own: Json = {
        "key": "kubernetes.io/metadata.name",
        "operator": "In",
        "values": [OPERATORS["jobset"].namespace],
    }
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                resource_rule("rbac.authorization.k8s.io", "clusterroles", on=["CREATE", "UPDATE"]),
                resource_rule("apps", "deployments", on=["CREATE", "UPDATE"]),
            ],
            # Kubernetes does not apply it to ClusterRoles.
            "namespaceSelector": {"matchExpressions": [own]},
        },
        "matchConditions": [
            {"name": "jobset", "expression": f"object.metadata.?name.orValue('') == {text(JOBSET_ROLE)}"}
        ],
        "reinvocationPolicy": "IfNeeded",
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": f"request.kind.kind == 'ClusterRole' ? {rules} : {priority}"},
            }
        ],
    }


def operator_writes_spec() -> Json:
    """Return the policy that keeps the writes of both accounts in training namespaces, and their Roles to those of autoscalers."""
    training = f"namespaceObject.metadata.?labels[?{text(TRAINING)}].orValue('') == {text(TRAINING_VALUE)}"
    writes = ("CREATE", "UPDATE", "DELETE")
    new = "dyn(object)"
    of_autoscaler = f"{new}.?rules.orValue([]).all(r, r.?resources.orValue([]).all(x, x in {texts(_AUTOSCALER_RESOURCES)}))"
    in_namespace = "s.kind == 'ServiceAccount' && s.?namespace.orValue('') == request.namespace"
    bound = f"{new}.roleRef.kind == 'Role' && {new}.?subjects.orValue([]).all(s, {in_namespace})"
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                resource_rule(
                    "", "pods", "pods/*", "services", "services/*", "persistentvolumeclaims", on=writes
                ),
                resource_rule("batch", "jobs", "jobs/*", on=writes),
                resource_rule("jobset.x-k8s.io", "*", on=writes),
                resource_rule("ray.io", "*", on=writes),
                resource_rule("rbac.authorization.k8s.io", "roles", "rolebindings", on=["CREATE", "UPDATE"]),
            ]
        },
        "matchConditions": [
            {
                "name": "operators",
                "expression": f"request.userInfo.username in {texts((JOBSET_ACCOUNT, KUBERAY_ACCOUNT))}",
            }
        ],
        "validations": refusals(
            (
                training,
                "the operators of jobs write in training namespaces only: label the namespace, or run the job in another",
            ),
            (
                f"request.resource.resource != 'roles' || ({of_autoscaler})",
                "KubeRay creates only the Role of an autoscaler",
            ),
            (
                f"request.resource.resource != 'rolebindings' || ({bound})",
                "KubeRay binds only a Role, to service accounts of its namespace",
            ),
        ),
    }
