"""A training namespace: where jobs run, with their ladder, checkpoints, quota and permissions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi import ComponentResource, Output, ResourceOptions

from pulumi_holdfast.kubernetes.fallback_controller.access import COPIES_ROLE, JOBS_ROLE, SUBJECT
from pulumi_holdfast.kubernetes.fallback_policy import API_VERSION, KIND, ladder_spec
from pulumi_holdfast.kubernetes.kubernetes_object import RBAC, KubernetesObject, role_ref
from pulumi_holdfast.kubernetes.network import network_policy, training_spec
from pulumi_holdfast.kubernetes.operators.operator_access import RAY_ROLE, RAY_SUBJECT
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import mapping, sequence
from pulumi_holdfast.ladder.labels import (
    CHECKPOINT_URI,
    CHECKPOINTS,
    GPU_RESOURCE,
    HIGHEST_PRIORITY,
    LADDER,
    TRAINING,
    TRAINING_VALUE,
    VOLUME_CLAIMS,
)
from pulumi_holdfast.ladder.quantities import format_cpu, format_memory
from pulumi_holdfast.ladder.quotas import derived_quota

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input

    from pulumi_holdfast.kubernetes.fallback_controller.access import Users
    from pulumi_holdfast.kubernetes.network import TrainingNetwork
    from pulumi_holdfast.ladder.json import Json
    from pulumi_holdfast.ladder.ladder import Ladder
    from pulumi_holdfast.ladder.quotas import Quota
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary
    from pulumi_holdfast.ladder.reachability.shape import Shape

#: The service account of training pods; each cloud grants it access to the namespace's checkpoints only.
SERVICE_ACCOUNT = "trainer"

#: The ResourceQuota and the LimitRange of a training namespace.
QUOTA = "training"

#: What jobs consist of, which stays when they have ended: each with its Service and its claims, and pods with their Jobs.
_COUNTED: Final = ("configmaps", "jobsets.jobset.x-k8s.io", "rayclusters.ray.io", "rayjobs.ray.io")
_COUNTED_BY_POD: Final = ("jobs.batch", "persistentvolumeclaims", "pods", "services")

#: Kubernetes refuses all objects of a kind until its controller of quotas has found the kind, which takes up to 5 minutes in a
#: new cluster: without this wait, `pulumi up` ends before a JobSet can be created.
_WAIT_UNTIL_COUNTED: Final = json.dumps([f"jsonpath={{.status.used['count/{kind}']}}" for kind in _COUNTED])

POD_SECURITY = "pod-security.kubernetes.io/enforce"

PodSecurity: TypeAlias = Literal["privileged", "baseline", "restricted"]


def service_account_of(environment: str) -> str:
    """Return the service account's name where it must distinguish environments.

    Google Cloud identifies a pod by project, namespace and service account, not by its cluster: with the same
    name, the jobs of two environments in one project could overwrite each other's checkpoints.
    """
    return f"{SERVICE_ACCOUNT}-{environment}"


@dataclass(frozen=True, kw_only=True)
class TrainingNamespaceArgs:
    """Arguments of `TrainingNamespace`.

    `namespace` is its name, `ladder` the ladder of its jobs, `checkpoint_uri` the address of their
    checkpoints. `pod_security` is the Pod Security Standard that is enforced: `baseline`, or `privileged` for
    training that needs host devices or locked memory, such as RDMA. `service_account` is the name of the
    pods' service account, `identity` its annotations, from which a cloud's webhook determines the pods'
    identity. `pools` are the known facts of the ladder's pools by name. `shapes` are the shapes of its jobs,
    `quota` the limit for all its pods and objects together; None: one derived from `pools`, which are then those of all tiers of this
    cluster. Without `bounded` there is none. `highest_priority` is that of its pods. `network` is what reaches its pods and what they reach, None for
    everything. `accepted` are the user names of the controllers of
    other clusters whose jobs may run in it. `claims` are its volume claims with which jobs reach on-demand. `elsewhere` are the fields that the stacks of other clusters give the tiers in them, by
    cluster and pool.
    """

    namespace: str
    ladder: Ladder
    checkpoint_uri: Input[str]
    pod_security: PodSecurity = "baseline"
    service_account: str = SERVICE_ACCOUNT
    identity: Mapping[str, Input[str]] = field(default_factory=dict[str, "Input[str]"])
    pools: Mapping[str, PoolSummary] = field(default_factory=dict[str, "PoolSummary"])
    shapes: Sequence[Shape] = ()
    quota: Quota | None = None
    bounded: bool = True
    highest_priority: int = 0
    network: TrainingNetwork | None = None
    accepted: Users = ()
    claims: Sequence[str] = ()
    elsewhere: Mapping[tuple[str, str], Input[Json]] = field(
        default_factory=dict[tuple[str, str], "Input[Json]"]
    )


class TrainingNamespace(ComponentResource):
    """A namespace for training jobs (`holdfast:index:TrainingNamespace`).

    Creates the Namespace with the label `holdfast.dev/training: "true"` and the priority of its pods; in it the ServiceAccount of the
    jobs, the FallbackPolicy `ladder`, the ConfigMap `checkpoints` with CHECKPOINT_URI, the
    ResourceQuota and the LimitRange `training`, with `network` the NetworkPolicy `holdfast`, and the RoleBindings
    that let Ray's operator run its jobs, the fallback controller move them, and those of other clusters write the
    copies of theirs. Depend on the definition of FallbackPolicy, Operators, TrainingAdmission, JobAdmission, JobValidation
    and FallbackController: the quota is created once Kubernetes counts JobSets and Ray's kinds.
    """

    def __init__(self, name: str, args: TrainingNamespaceArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:TrainingNamespace", name, None, opts)
        annotations = {
            **({HIGHEST_PRIORITY: str(args.highest_priority)} if args.highest_priority else {}),
            **({VOLUME_CLAIMS: ",".join(args.claims)} if args.claims else {}),
        }
        namespace = KubernetesObject(
            f"{name}-namespace",
            "v1",
            "Namespace",
            {
                "metadata": {
                    "name": args.namespace,
                    "labels": {TRAINING: TRAINING_VALUE, POD_SECURITY: args.pod_security},
                    **({"annotations": annotations} if annotations else {}),
                }
            },
            opts=ResourceOptions(parent=self),
        )
        # The namespace's name is a plain string, not an output, so that policies know it on preview. The
        # objects are deleted with the namespace: deleting them one by one would take them from running jobs.
        inside = ResourceOptions(parent=self, depends_on=[namespace], deleted_with=namespace)
        before_ladder: list[KubernetesObject] = []
        if args.network is not None:
            before_ladder.append(
                network_policy(f"{name}-network", args.namespace, training_spec(args.network), inside)
            )
        KubernetesObject(
            f"{name}-{SERVICE_ACCOUNT}",
            "v1",
            "ServiceAccount",
            # Training pods do not use the Kubernetes API, and cloud access uses tokens of its own.
            {"metadata": _account(args), "automountServiceAccountToken": False},
            opts=inside,
        )
        KubernetesObject(
            f"{name}-{CHECKPOINTS}",
            "v1",
            "ConfigMap",
            {
                "metadata": {"name": CHECKPOINTS, "namespace": args.namespace},
                "data": {CHECKPOINT_URI: args.checkpoint_uri},
            },
            opts=inside,
        )
        bound: dict[str, Sequence[object]] = {JOBS_ROLE: [SUBJECT], RAY_ROLE: [RAY_SUBJECT]}
        if args.accepted:
            bound[COPIES_ROLE] = [_user(each) for each in args.accepted]
        before_ladder += [
            KubernetesObject(
                f"{name}-{role}",
                RBAC,
                "RoleBinding",
                {
                    "metadata": {"name": role, "namespace": args.namespace},
                    "roleRef": role_ref("ClusterRole", role),
                    "subjects": subjects,
                },
                opts=inside,
            )
            for role, subjects in bound.items()
        ]
        KubernetesObject(
            f"{name}-{LADDER}",
            API_VERSION,
            KIND,
            {"metadata": {"name": LADDER, "namespace": args.namespace}, "spec": _spec(args)},
            # The controller writes its status as soon as it exists, and admission refuses pods in a namespace without it: none
            # starts before the network policy is there.
            opts=ResourceOptions.merge(inside, ResourceOptions(depends_on=before_ladder)),
        )
        quota = _quota(args)
        if quota is not None:
            KubernetesObject(
                f"{name}-quota",
                "v1",
                "ResourceQuota",
                {
                    "metadata": {
                        "name": QUOTA,
                        "namespace": args.namespace,
                        "annotations": {"pulumi.com/waitFor": _WAIT_UNTIL_COUNTED},
                    },
                    "spec": {"hard": quota_limits(quota)},
                },
                opts=inside,
            )
            KubernetesObject(
                f"{name}-requests",
                "v1",
                "LimitRange",
                {"metadata": {"name": QUOTA, "namespace": args.namespace}, "spec": default_requests()},
                opts=inside,
            )
        self.register_outputs({})


def _quota(args: TrainingNamespaceArgs) -> Quota | None:
    """Return the quota; raise ConfigError if it cannot be derived."""
    if args.quota is not None or not args.bounded:
        return args.quota
    here = [tier.pool for tier in args.ladder.tiers if not tier.cluster]
    unknown = [pool for pool in here if pool not in args.pools]
    if unknown:
        problem = Problem(
            field=f"quota of the training namespace {args.namespace}",
            value=f"none, with nothing known of {', '.join(unknown)}",
            allowed="a quota, or the facts of the ladder's pools, from whose maxNodes it follows",
            fix="Give it a quota, or pools.",
        )
        raise ConfigError([problem])
    return derived_quota([args.pools[pool] for pool in here], args.shapes)


def _user(name: Input[str]) -> Mapping[str, object]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


def _spec(args: TrainingNamespaceArgs) -> Mapping[str, object]:
    """Return the specification of the ladder, with what other stacks say of their tiers."""
    spec = ladder_spec(args.ladder, args.pools, args.shapes)
    written = zip(args.ladder.tiers, sequence(spec["tiers"]), strict=True)
    tiers = [_told(mapping(each), args.elsewhere.get((tier.cluster, tier.pool))) for tier, each in written]
    return {**spec, "tiers": tiers}


def _told(tier: Json, said: Input[Json] | None) -> Input[Json]:
    return tier if said is None else Output.from_input(said).apply(lambda fields: {**tier, **fields})


def quota_limits(quota: Quota) -> Mapping[str, str]:
    """Return the limits of the ResourceQuota."""
    return {
        "requests.cpu": format_cpu(quota.cpu_millis),
        "requests.memory": format_memory(quota.memory_mib),
        f"requests.{GPU_RESOURCE}": str(quota.gpus),
        "pods": str(quota.pods),
        "requests.storage": format_memory(quota.storage_mib),
        **{f"count/{kind}": str(quota.objects) for kind in _COUNTED},
        **{f"count/{kind}": str(quota.objects + 2 * quota.pods) for kind in _COUNTED_BY_POD},
    }


def default_requests() -> Json:
    """Return the specification of the LimitRange: with a quota, the API server rejects a container without these requests."""
    return {"limits": [{"type": "Container", "defaultRequest": {"cpu": "10m", "memory": "16Mi"}}]}


def _account(args: TrainingNamespaceArgs) -> Mapping[str, object]:
    metadata = {"name": args.service_account, "namespace": args.namespace}
    return {**metadata, "annotations": args.identity} if args.identity else metadata
