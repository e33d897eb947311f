"""The component that makes a namespace a place for training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import ConfigMap, Namespace, ResourceQuota, ServiceAccount
from pulumi_kubernetes.rbac.v1 import RoleBinding

from holdfast.components.fallback_controller.access import JOBS_ROLE, SUBJECT, role_ref
from holdfast.components.fallback_policy.definition import API_VERSION, KIND
from holdfast.components.fallback_policy.ladder import ladder_spec
from holdfast.scheduling.labels import GPU_RESOURCE, LADDER, TRAINING, TRAINING_VALUE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input
    from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict
    from pulumi_kubernetes.rbac.v1 import RoleRefArgsDict, SubjectArgsDict

    from holdfast.scheduling.ladder import Ladder
    from holdfast.scheduling.pools import PoolSummary
    from holdfast.scheduling.quotas import Quota
    from holdfast.scheduling.reachability.shape import Shape

#: The service account that training pods name; each cloud binds it to the namespace's checkpoints alone.
SERVICE_ACCOUNT = "trainer"

#: The ConfigMap that training pods take CHECKPOINT_URI from (`envFrom`).
CHECKPOINTS = "checkpoints"

#: The ResourceQuota of a training namespace.
QUOTA = "training"

POD_SECURITY = "pod-security.kubernetes.io/enforce"

PodSecurity: TypeAlias = Literal["privileged", "baseline", "restricted"]


def service_account_of(environment: str) -> str:
    """The service account's name where a cloud tells the pods of one environment from those of another by it alone.

    Google Cloud knows a pod by its project, namespace and service account, and not by its cluster: under one name the
    jobs of two environments in one project could read and overwrite each other's checkpoints.
    """
    return f"{SERVICE_ACCOUNT}-{environment}"


@dataclass(frozen=True, kw_only=True)
class TrainingNamespaceArgs:
    """What a training namespace is told.

    `namespace` is its name in the cluster, `ladder` what its jobs walk down, `checkpoint_uri` the place its jobs write
    checkpoints to, theirs alone. `pod_security` is the Pod Security Standard its pods are held to: `baseline` keeps them
    off the host, and `privileged` is for training that needs it, as RDMA does with host devices or locked memory.
    `service_account` is the name of the account that training pods name; `identity` are its annotations, by which a
    cloud's own webhook knows whose rights its pods have. `pools` is what is known of the ladder's pools, by their names.
    `shapes` are those of the jobs that it is for, `quota` what its pods may be together, None for no bound.
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


class TrainingNamespace(ComponentResource):
    """A namespace where jobs run.

    Creates the Namespace, labelled `holdfast.dev/training: "true"`; in it the ServiceAccount of its jobs, the
    FallbackPolicy `ladder`, the ConfigMap `checkpoints` with CHECKPOINT_URI, the ResourceQuota `training` if there is to be
    one, and the RoleBinding by which the fallback controller may move them. It needs the cluster's
    FallbackPolicyDefinition, TrainingAdmission, JobAdmission, JobValidation and FallbackController: depend on all of them.
    """

    def __init__(self, name: str, args: TrainingNamespaceArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:TrainingNamespace", name, None, opts)
        namespace = Namespace(
            f"{name}-namespace",
            metadata={
                "name": args.namespace,
                "labels": {TRAINING: TRAINING_VALUE, POD_SECURITY: args.pod_security},
            },
            opts=ResourceOptions(parent=self),
        )
        # The namespace's name is passed as text rather than as its output, so that a preview knows which namespace
        # each object lies in, and with it the policies.
        # They go with the namespace: deleted one by one they would be taken from under jobs that still run.
        inside = ResourceOptions(parent=self, depends_on=[namespace], deleted_with=namespace)
        ServiceAccount(
            f"{name}-{SERVICE_ACCOUNT}",
            metadata=_account(args),
            # Training has no business with the cluster's API, and checkpoints are reached by tokens of their own.
            automount_service_account_token=False,
            opts=inside,
        )
        ConfigMap(
            f"{name}-{CHECKPOINTS}",
            metadata={"name": CHECKPOINTS, "namespace": args.namespace},
            data={"CHECKPOINT_URI": args.checkpoint_uri},
            opts=inside,
        )
        CustomResource(
            f"{name}-{LADDER}",
            api_version=API_VERSION,
            kind=KIND,
            metadata={"name": LADDER, "namespace": args.namespace},
            spec=ladder_spec(args.ladder, args.pools, args.shapes),
            opts=inside,
        )
        RoleBinding(
            f"{name}-{JOBS_ROLE}",
            metadata={"name": JOBS_ROLE, "namespace": args.namespace},
            role_ref=cast("RoleRefArgsDict", role_ref("ClusterRole", JOBS_ROLE)),
            subjects=[cast("SubjectArgsDict", SUBJECT)],
            opts=inside,
        )
        if args.quota is not None:
            ResourceQuota(
                f"{name}-quota",
                metadata={"name": QUOTA, "namespace": args.namespace},
                spec={"hard": hard(args.quota)},
                opts=inside,
            )
        self.register_outputs({})


def hard(quota: Quota) -> Mapping[str, str]:
    """What a ResourceQuota bounds. Of CPU and memory nothing: it would refuse every pod that requests none."""
    return {f"requests.{GPU_RESOURCE}": str(quota.gpus), "pods": str(quota.pods)}


def _account(args: TrainingNamespaceArgs) -> ObjectMetaArgsDict:
    metadata: ObjectMetaArgsDict = {"name": args.service_account, "namespace": args.namespace}
    return {**metadata, "annotations": args.identity} if args.identity else metadata
