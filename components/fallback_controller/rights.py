"""What the fallback controller may do. Pure.

It reads jobs and nodes in the whole cluster, since it watches a kind and not a namespace; it writes to jobs in training
namespaces alone, where a RoleBinding says so, to its lease, and to placeholders in their own namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.scheduling.labels import CONTROLLER, CONTROLLER_NAMESPACE, LEASE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.scheduling.json import Json

#: The cluster role that is bound in each training namespace.
JOBS_ROLE: Final = f"{CONTROLLER}-jobs"

_WATCH: Final = ("list", "watch")


def rule(group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> Json:
    """Return one rule of a role; with `names`, for objects of these names alone."""
    return {
        "apiGroups": [group],
        "resources": list(resources),
        "verbs": list(verbs),
        **({"resourceNames": list(names)} if names else {}),
    }


#: In the whole cluster. A node is written to for its taint, by which a held one is kept for its job.
CLUSTER_RULES: Final[Sequence[Json]] = (
    rule("", ["namespaces", "pods"], _WATCH),
    rule("", ["nodes"], [*_WATCH, "get", "patch"]),
    rule("batch", ["jobs"], _WATCH),
    rule("jobset.x-k8s.io", ["jobsets"], _WATCH),
    rule("ray.io", ["rayclusters", "rayjobs"], _WATCH),
    rule("karpenter.sh", ["nodeclaims", "nodepools"], _WATCH),
    rule("kueue.x-k8s.io", ["workloads"], _WATCH),
    rule("holdfast.dev", ["fallbackpolicies"], _WATCH),
)

#: In training namespaces. Pods are patched to ask them for a checkpoint, and ended and deleted when their machine is gone
#: for good: nothing else ends those. RayJobs are created in the place of one that has failed.
JOB_RULES: Final[Sequence[Json]] = (
    rule("", ["events"], ["create", "get", "patch"]),
    rule("", ["pods"], ["delete", "patch"]),
    rule("", ["pods/status"], ["patch"]),
    rule("batch", ["jobs"], ["delete"]),
    rule("jobset.x-k8s.io", ["jobsets"], ["patch"]),
    rule("ray.io", ["rayjobs"], ["create", "patch"]),
    rule("holdfast.dev", ["fallbackpolicies/status"], ["patch"]),
)

#: In its own namespace. What is not there yet cannot be named in a rule.
OWN_RULES: Final[Sequence[Json]] = (
    rule("coordination.k8s.io", ["leases"], ["create"]),
    rule("coordination.k8s.io", ["leases"], ["get", "update"], [LEASE]),
)

#: In the namespace of placeholders.
HOLDING_RULES: Final[Sequence[Json]] = (rule("", ["pods"], ["create", "delete"]),)

SUBJECT: Final[Json] = {
    "kind": "ServiceAccount",
    "name": CONTROLLER,
    "namespace": CONTROLLER_NAMESPACE,
}


def role_ref(kind: str, name: str) -> Json:
    """Return the reference of a binding to a Role or ClusterRole."""
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
