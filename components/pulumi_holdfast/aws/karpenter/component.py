"""The Karpenter component for EKS, with the values of its chart, its API priority and its queue of interruptions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_aws.cloudwatch import EventRule, EventTarget
from pulumi_aws.sqs import Queue, QueuePolicy

from pulumi_holdfast.aws.karpenter.iam_roles import (
    ControllerIdentity,
    ControllerIdentityArgs,
    KarpenterNodeRole,
    KarpenterNodeRoleArgs,
)
from pulumi_holdfast.aws.policy_documents import Place, Statement, Workload, document
from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.kubernetes.operators.charted_operator import ChartedOperator, ChartedOperatorArgs
from pulumi_holdfast.kubernetes.operators.pod_settings import SYSTEM_NODE_SELECTOR, SYSTEM_TOLERATIONS, image
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CONTROLLER_NAMESPACE

#: The release's service account, which is associated with the controller's IAM role.
SERVICE_ACCOUNT: Final = "karpenter"


@dataclass(frozen=True, kw_only=True)
class ControllerValues:
    """The values that differ between clusters; `repository` is the image's, without a tag."""

    cluster_name: str
    region: str
    repository: str
    version: str
    digest: str
    replicas: int
    isolated: bool
    node_repair: bool = True


def karpenter_values(controller: ControllerValues, queue: str) -> Json:
    """Return the chart's values; `queue` is the interruption queue's name.

    The chart itself spreads its two replicas over nodes and zones, and keeps them off Karpenter's own nodes.
    """
    return {
        "replicas": controller.replicas,
        "serviceAccount": {"name": SERVICE_ACCOUNT},
        "nodeSelector": SYSTEM_NODE_SELECTOR,
        "tolerations": SYSTEM_TOLERATIONS,
        "controller": {
            # Both are set because the chart in Karpenter's repository has the tag and digest of the previous
            # release, and its digest would take precedence over the tag.
            "image": {
                "repository": controller.repository,
                "tag": controller.version,
                "digest": controller.digest,
            },
            # Without it Karpenter asks the instance metadata of its node, which may not answer pods.
            "env": [{"name": "AWS_REGION", "value": controller.region}],
            # No CPU limit: a throttled controller would react late to interruption notices.
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
        },
        "settings": {
            "clusterName": controller.cluster_name,
            "interruptionQueue": queue,
            "eksControlPlane": True,
            "isolatedVPC": controller.isolated,
            # Replaces a node that reports unhealthy GPUs for 10 minutes, or another fault for 30. A spot notice comes 2
            # minutes in advance and is handled first.
            "featureGates": {"nodeRepair": controller.node_repair},
        },
    }


def flow_schemas(namespace: str, service_account: str) -> Mapping[str, Json]:
    """Return FlowSchema specifications by purpose: the leader election lease, and all other requests.

    In `kube-system` Karpenter would share the priority of the cluster's controllers. In its own namespace it
    would share that of all other service accounts, and drain nodes too late when jobs or operators flood the
    API server.
    """
    subject: Json = {
        "kind": "ServiceAccount",
        "serviceAccount": {"name": service_account, "namespace": namespace},
    }
    leases: Json = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "namespaces": [namespace],
        "verbs": ["get", "create", "update"],
    }
    everything: Json = {
        "apiGroups": ["*"],
        "resources": ["*"],
        "namespaces": ["*"],
        "clusterScope": True,
        "verbs": ["*"],
    }
    return {
        "leader-election": {
            "distinguisherMethod": {"type": "ByUser"},
            "matchingPrecedence": 200,
            "priorityLevelConfiguration": {"name": "leader-election"},
            "rules": [{"subjects": [subject], "resourceRules": [leases]}],
        },
        "workload": {
            "distinguisherMethod": {"type": "ByUser"},
            "matchingPrecedence": 1000,
            "priorityLevelConfiguration": {"name": "workload-high"},
            "rules": [
                {
                    "subjects": [subject],
                    "resourceRules": [everything],
                    "nonResourceRules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}],
                }
            ],
        },
    }


NAMESPACE: Final = "karpenter"

#: Where its Service shows the metrics of its leader and of its other replica in turn.
METRICS_ADDRESS: Final = f"http://karpenter.{NAMESPACE}.svc:8080/metrics"

_IMAGE: Final = "public.ecr.aws/karpenter/controller"


@dataclass(frozen=True, kw_only=True)
class EksKarpenterArgs:
    """Arguments of `EksKarpenter`.

    `account` has 12 digits, `partition` is `aws`, `aws-cn` or `aws-us-gov`. `charts` is a directory or
    address of charts and `images` a registry; None: the project's own. `version` is the version of Karpenter,
    its chart and its image; `image_digest` (`sha256:…`) is the image's digest, "" if unknown. `isolated`: the
    VPC reaches AWS through endpoints only. `role_path` is the path of the stack's IAM roles. `scrapers` are the
    namespaces that reach its metrics.
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
    node_repair: bool = True
    role_path: str = "/"
    scrapers: Sequence[str] = ()


class EksKarpenter(ComponentResource):
    """Karpenter with its resources in AWS (`holdfast:index:EksKarpenter`).

    Creates the role of its nodes, the interruption queue, the controller's role, its FlowSchemas, and in the
    namespace `karpenter` the releases of its CRDs and controller. Create it after the cluster's Pod Identity
    agent. It must outlive the pools: without it the finalizers of their nodes are never removed.
    `instance_profile` exists in an isolated VPC only; elsewhere Karpenter creates its own.
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
                role_path=args.role_path,
            ),
            opts=ResourceOptions(parent=self),
        )
        places = [
            KubernetesObject(
                f"{name}-{purpose}",
                "flowcontrol.apiserver.k8s.io/v1",
                "FlowSchema",
                {"metadata": {"name": f"karpenter-{purpose}"}, "spec": spec},
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
                allow_from=[CONTROLLER_NAMESPACE, *args.scrapers],
            ),
            # The association must exist first because identities are injected when a pod is created. The
            # others must outlive the controller, which terminates instances and reads the queue until it
            # stops.
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
        region=args.region,
        repository=image(args.images, _IMAGE),
        version=args.version,
        digest=args.image_digest,
        replicas=args.replicas,
        isolated=args.isolated,
        node_repair=args.node_repair,
    )
    # Releases accept an output wherever they accept a value.
    return cast("Json", queue.apply(lambda name: karpenter_values(controller, name)))


#: Event → its source and its detail type.
_EVENTS: Final[Mapping[str, tuple[str, str]]] = {
    "spot": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state-change": ("aws.ec2", "EC2 Instance State-change Notification"),
    "health": ("aws.health", "AWS Health Event"),
    "reservation": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}

INTERRUPTION_EVENTS: Final = tuple(_EVENTS)


def event_pattern(event: str) -> str:
    """Return the pattern of the rule for one of the events."""
    source, title = _EVENTS[event]
    return json.dumps({"source": [source], "detail-type": [title]})


def queue_policy(queue: str, rules: Sequence[str]) -> str:
    """Return the queue's policy: these rules may send, and TLS is required. All arguments are ARNs."""
    return document(
        Statement(
            sid="AllowInterruptionEvents",
            actions=["sqs:SendMessage"],
            resources=[queue],
            principals={"Service": ["events.amazonaws.com"]},
            # EventBridge sends on behalf of all accounts: without it any account's rule could fill the queue.
            conditions={"ArnEquals": {"aws:SourceArn": list(rules)}},
        ),
        Statement(
            sid="DenyWithoutTLS",
            effect="Deny",
            actions=["sqs:*"],
            resources=[queue],
            principals="*",
            conditions={"Bool": {"aws:SecureTransport": "false"}},
        ),
    )


#: In seconds. A spot notice comes 2 minutes in advance: older messages are about nodes that are gone.
_RETENTION: Final = 300


@dataclass(frozen=True, kw_only=True)
class InterruptionQueueArgs:
    """Where the queue is."""

    place: Place


class InterruptionQueue(ComponentResource):
    """The queue of interruption events from EC2 and AWS Health (`holdfast:index:InterruptionQueue`).

    Creates the queue, encrypted with SQS's keys, its policy, and an event rule with a target for each kind of
    event. The events are those of the whole region; Karpenter ignores other instances.
    """

    queue_name: Output[str]

    def __init__(self, name: str, args: InterruptionQueueArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:InterruptionQueue", name, None, opts)
        queue = Queue(
            f"{name}-queue",
            message_retention_seconds=_RETENTION,
            sqs_managed_sse_enabled=True,
            opts=ResourceOptions(parent=self),
        )
        rules = {
            event: EventRule(
                f"{name}-{event}",
                event_pattern=event_pattern(event),
                description=f"Tells Karpenter of {event.replace('-', ' ')}",
                opts=ResourceOptions(parent=self),
            )
            for event in INTERRUPTION_EVENTS
        }
        policy = QueuePolicy(
            f"{name}-policy",
            queue_url=queue.url,
            policy=Output.all(queue.name, *(rule.name for rule in rules.values())).apply(
                lambda names: _policy(args.place, names)
            ),
            opts=ResourceOptions(parent=self),
        )
        for event, rule in rules.items():
            EventTarget(
                f"{name}-{event}-target",
                rule=rule.name,
                arn=queue.arn,
                # A generated ID would differ after an interrupted run and leave a second target behind.
                target_id="karpenter",
                # An event that the queue rejects is lost silently.
                opts=ResourceOptions(parent=self, depends_on=[policy]),
            )
        self.queue_name = queue.name
        self.register_outputs({"queue_name": self.queue_name})


def _policy(place: Place, names: Sequence[str]) -> str:
    queue, *rules = names
    return queue_policy(place.queue(queue), [place.event_rule(rule) for rule in rules])
