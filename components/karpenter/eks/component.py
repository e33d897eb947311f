"""Karpenter for EC2 instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_kubernetes.flowcontrol.v1 import FlowSchema

from holdfast.components.iam.aws import Place, Workload
from holdfast.components.karpenter.eks.iam_roles import (
    ControllerIdentity,
    ControllerIdentityArgs,
    KarpenterNodeRole,
    KarpenterNodeRoleArgs,
)
from holdfast.components.karpenter.eks.interruption_queue import InterruptionQueue, InterruptionQueueArgs
from holdfast.components.operators.charted_operator import ChartedOperator, ChartedOperatorArgs
from holdfast.components.operators.pod_settings import SYSTEM_NODE_SELECTOR, SYSTEM_TOLERATIONS, image

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_kubernetes.flowcontrol.v1 import (
        FlowSchemaSpecArgsDict,
        ResourcePolicyRuleArgsDict,
        SubjectArgsDict,
    )

    from holdfast.scheduling.json import Json


#: The chart's release and its service account, which the controller's identity is bound to.
SERVICE_ACCOUNT: Final = "karpenter"


@dataclass(frozen=True, kw_only=True)
class ControllerValues:
    """What differs between controllers; `repository` is the image's, without a tag."""

    cluster_name: str
    repository: str
    version: str
    digest: str
    replicas: int
    isolated: bool


def karpenter_values(controller: ControllerValues, queue: str) -> Json:
    """The chart's values; `queue` is the interruption queue's name.

    The chart itself keeps two controllers on two nodes in two zones, and off nodes that Karpenter made.
    """
    return {
        "replicas": controller.replicas,
        "serviceAccount": {"name": SERVICE_ACCOUNT},
        "nodeSelector": SYSTEM_NODE_SELECTOR,
        "tolerations": SYSTEM_TOLERATIONS,
        "controller": {
            # The chart in Karpenter's repository names the release before by tag and digest: both are given, since
            # a digest left over would win over the tag.
            "image": {
                "repository": controller.repository,
                "tag": controller.version,
                "digest": controller.digest,
            },
            # The chart passes both on to the controller. No limit on CPU: throttled, it would be late for a notice.
            "resources": {
                "requests": {"cpu": "500m", "memory": "1Gi"},
                "limits": {"memory": "1Gi"},
            },
        },
        "settings": {
            "clusterName": controller.cluster_name,
            "interruptionQueue": queue,
            "eksControlPlane": True,
            "isolatedVPC": controller.isolated,
        },
    }


def flow_schemas(namespace: str, service_account: str) -> Mapping[str, FlowSchemaSpecArgsDict]:
    """Purpose → spec: the lease that elects a leader, and everything else."""
    subject: SubjectArgsDict = {
        "kind": "ServiceAccount",
        "service_account": {"name": service_account, "namespace": namespace},
    }
    leases: ResourcePolicyRuleArgsDict = {
        "api_groups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "namespaces": [namespace],
        "verbs": ["get", "create", "update"],
    }
    everything: ResourcePolicyRuleArgsDict = {
        "api_groups": ["*"],
        "resources": ["*"],
        "namespaces": ["*"],
        "cluster_scope": True,
        "verbs": ["*"],
    }
    return {
        "leader-election": {
            "distinguisher_method": {"type": "ByUser"},
            "matching_precedence": 200,
            "priority_level_configuration": {"name": "leader-election"},
            "rules": [{"subjects": [subject], "resource_rules": [leases]}],
        },
        "workload": {
            "distinguisher_method": {"type": "ByUser"},
            "matching_precedence": 1000,
            "priority_level_configuration": {"name": "workload-high"},
            "rules": [
                {
                    "subjects": [subject],
                    "resource_rules": [everything],
                    "non_resource_rules": [{"non_resource_urls": ["*"], "verbs": ["*"]}],
                }
            ],
        },
    }


NAMESPACE: Final = "karpenter"

_IMAGE: Final = "public.ecr.aws/karpenter/controller"


@dataclass(frozen=True, kw_only=True)
class EksKarpenterArgs:
    """The cluster, where it is, and which Karpenter it gets.

    `account` has 12 digits, `partition` is `aws`, `aws-cn` or `aws-us-gov`. `charts` is a directory or address of
    charts and `images` a registry in place of upstream's; None: upstream's. `version` is Karpenter's, its chart's
    and its image's; `image_digest` is that of the same image (`sha256:…`), "" where it is not known.
    `isolated`: the VPC reaches AWS by endpoints alone.
    """

    cluster_name: str
    account: str
    region: str
    partition: str
    charts: str | None
    images: str | None
    version: str
    image_digest: str
    replicas: int = 2
    isolated: bool = False


class EksKarpenter(ComponentResource):
    """Karpenter, with everything it needs in AWS.

    Creates the role of its nodes, the queue of interruptions, the controller's own identity, its place in the API
    server's queues, and in the namespace `karpenter` the release of its CRDs and that of the controller. The cluster's
    Pod Identity agent must be there before it. It must outlive the pools: without it their nodes' finalizers are
    never removed. `instance_profile` is there in an isolated VPC alone; elsewhere Karpenter makes its own.
    """

    node_role_name: Output[str]
    node_role_arn: Output[str]
    instance_profile: Output[str] | None
    queue_name: Output[str]

    def __init__(self, name: str, args: EksKarpenterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:EksKarpenter", name, None, opts)
        place = Place(account=args.account, region=args.region, partition=args.partition)
        nodes = KarpenterNodeRole(
            f"{name}-node",
            KarpenterNodeRoleArgs(place=place, instance_profile=args.isolated),
            opts=ResourceOptions(parent=self),
        )
        interruptions = InterruptionQueue(
            f"{name}-interruption", InterruptionQueueArgs(place=place), opts=ResourceOptions(parent=self)
        )
        identity = ControllerIdentity(
            f"{name}-controller",
            ControllerIdentityArgs(
                place=place,
                workload=_workload(args),
                node_role=nodes.role_name,
                queue=interruptions.queue_name,
                isolated=args.isolated,
            ),
            opts=ResourceOptions(parent=self),
        )
        places = [
            FlowSchema(
                f"{name}-{purpose}",
                metadata={"name": f"karpenter-{purpose}"},
                spec=spec,
                opts=ResourceOptions(parent=self),
            )
            for purpose, spec in flow_schemas(NAMESPACE, SERVICE_ACCOUNT).items()
        ]
        ChartedOperator(
            f"{name}-operator",
            ChartedOperatorArgs(
                namespace=NAMESPACE,
                release="karpenter",
                crds_release="karpenter-crds",
                crds_chart="karpenter-crds",
                charts=args.charts,
                chart="karpenter",
                version=args.version,
                chart_version=args.version,
                values=_values(args, interruptions.queue_name),
            ),
            # A pod is given its identity when it is made, and not later: the association comes first. The rest must
            # outlive the controller, which on its way out still ends instances and reads the queue.
            opts=ResourceOptions(parent=self, depends_on=[nodes, interruptions, identity, *places]),
        )
        self.node_role_name = nodes.role_name
        self.node_role_arn = nodes.role_arn
        self.instance_profile = nodes.instance_profile
        self.queue_name = interruptions.queue_name
        self.register_outputs({"node_role_name": self.node_role_name, "queue_name": self.queue_name})


def _workload(args: EksKarpenterArgs) -> Workload:
    return Workload(cluster_name=args.cluster_name, namespace=NAMESPACE, service_account=SERVICE_ACCOUNT)


def _values(args: EksKarpenterArgs, queue: Output[str]) -> Json:
    controller = ControllerValues(
        cluster_name=args.cluster_name,
        repository=image(args.images, _IMAGE),
        version=args.version,
        digest=args.image_digest,
        replicas=args.replicas,
        isolated=args.isolated,
    )
    # A release takes an output wherever it takes a value.
    return cast("Json", queue.apply(lambda name: karpenter_values(controller, name)))
