"""The fallback controller's permissions.

It watches kinds in the whole cluster, and so reads jobs and nodes everywhere. It writes only to jobs in
training namespaces, where a RoleBinding allows it, to its lease, and to placeholder pods in their own
namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.kubernetes_object import RBAC, KubernetesObject, role_ref, rule
from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE, LEASE, RESERVATION_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input

    from pulumi_holdfast.ladder.json import Json

    #: The names of users. How many there are is known, the names may be outputs.
    Users: TypeAlias = Sequence[Input[str]]


#: The ClusterRole that is bound in each training namespace.
JOBS_ROLE: Final = f"{CONTROLLER}-jobs"

#: The ClusterRole of controllers of other clusters, bound in the training namespaces that accept their jobs.
COPIES_ROLE: Final = "fallback-copies"

_WATCH: Final = ("list", "watch")


#: In the whole cluster. Nodes are patched for the taint that reserves them for a job.
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

#: In training namespaces. Pods are patched to request a checkpoint, and are failed and deleted when their
#: machine no longer exists, which no other controller does. RayJobs are created to replace a failed one; Jobs and pods in dry
#: runs only, which the write policy enforces.
JOB_RULES: Final[Sequence[Json]] = (
    rule("", ["events"], ["create", "get", "patch"]),
    rule("", ["pods"], ["create", "delete", "patch"]),
    rule("", ["pods/status"], ["patch"]),
    rule("batch", ["jobs"], ["create", "delete"]),
    rule("jobset.x-k8s.io", ["jobsets"], ["patch"]),
    rule("ray.io", ["rayjobs"], ["create", "patch"]),
    rule("holdfast.dev", ["fallbackpolicies/status"], ["patch"]),
)

#: In training namespaces beside JOB_RULES, in a cluster whose jobs move to others.
TRANSFER_RULES: Final[Sequence[Json]] = (
    rule("jobset.x-k8s.io", ["jobsets"], ["get"]),
    rule("jobset.x-k8s.io", ["jobsets/status"], ["patch"]),
    rule("ray.io", ["rayjobs"], ["get"]),
    rule("ray.io", ["rayjobs/status"], ["patch"]),
)

#: What the controller of another cluster may do with copies of its jobs, in the training namespaces here that accept them.
COPY_RULES: Final[Sequence[Json]] = (
    rule("", ["pods"], ["list"]),
    rule("batch", ["jobs"], ["list"]),
    rule("jobset.x-k8s.io", ["jobsets"], ["create", "delete", "get", "list", "patch"]),
    rule("ray.io", ["rayclusters"], ["list"]),
    rule("ray.io", ["rayjobs"], ["create", "delete", "get", "list", "patch"]),
)

#: In its own namespace. A rule for creation cannot name the object.
LEASE_RULES: Final[Sequence[Json]] = (
    rule("coordination.k8s.io", ["leases"], ["create"]),
    rule("coordination.k8s.io", ["leases"], ["get", "update"], [LEASE]),
)

#: In the namespace of placeholder pods.
PLACEHOLDER_RULES: Final[Sequence[Json]] = (rule("", ["pods"], ["create", "delete"]),)

SUBJECT: Final[Json] = {"kind": "ServiceAccount", "name": CONTROLLER, "namespace": CONTROLLER_NAMESPACE}


class ControllerAccess(ComponentResource):
    """The controller's service account and permissions (`holdfast:index:ControllerAccess`).

    Creates the ServiceAccount; the ClusterRole for reading with its binding; the ClusterRole for jobs, and the one of
    controllers of other clusters, which TrainingNamespace binds; and a Role with its binding in the controller's
    namespace and in the placeholders' namespace. Both namespaces must exist. `leaves`: jobs of this cluster may move to others.
    `accepts`: jobs of others may run here.
    """

    def __init__(
        self, name: str, opts: ResourceOptions | None = None, *, leaves: bool = False, accepts: bool = False
    ) -> None:
        super().__init__("holdfast:index:ControllerAccess", name, None, opts)
        account = {"metadata": {"name": CONTROLLER, "namespace": CONTROLLER_NAMESPACE}}
        inside = ResourceOptions(parent=self)
        KubernetesObject(f"{name}-account", "v1", "ServiceAccount", account, opts=inside)

        def role(part: str, kind: str, metadata: Json, rules: Sequence[Json]) -> KubernetesObject:
            fields = {"metadata": metadata, "rules": rules}
            return KubernetesObject(f"{name}-{part}-role", RBAC, kind, fields, opts=inside)

        def bound(part: str, kind: str, metadata: Json, rules: Sequence[Json]) -> None:
            made = role(part, kind, metadata, rules)
            fields = {"metadata": metadata, "roleRef": role_ref(kind, CONTROLLER), "subjects": [SUBJECT]}
            after = ResourceOptions(parent=self, depends_on=[made])
            KubernetesObject(f"{name}-{part}-role-binding", RBAC, f"{kind}Binding", fields, opts=after)

        bound("cluster", "ClusterRole", {"name": CONTROLLER}, CLUSTER_RULES)
        role("jobs", "ClusterRole", {"name": JOBS_ROLE}, [*JOB_RULES, *(TRANSFER_RULES if leaves else ())])
        if accepts:
            role("copies", "ClusterRole", {"name": COPIES_ROLE}, COPY_RULES)
        for namespace, rules in (
            (CONTROLLER_NAMESPACE, LEASE_RULES),
            (RESERVATION_NAMESPACE, PLACEHOLDER_RULES),
        ):
            bound(namespace, "Role", {"name": CONTROLLER, "namespace": namespace}, rules)
        self.register_outputs({})
