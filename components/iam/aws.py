"""Policy documents: statements, and the JSON that AWS reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json, JsonValue

#: To join, to give pods addresses and to pull images. Not AmazonSSMManagedInstanceCore, which Karpenter's official
#: template adds for shells on nodes: with it every node reads every parameter of the account.
NODE_POLICIES: Final = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
)


#: Service principals outside China end in this.
_SUFFIX: Final = "amazonaws.com"
_SUFFIX_IN_CHINA: Final = "amazonaws.com.cn"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where resources live: the `account` of 12 digits, the `region`, the `partition` (`aws`, `aws-cn`, …)."""

    account: str
    region: str
    partition: str

    def role(self, name: str) -> str:
        """The ARN of a role without a path."""
        return f"arn:{self.partition}:iam::{self.account}:role/{name}"

    def cluster(self, name: str) -> str:
        """The ARN of an EKS cluster."""
        return f"arn:{self.partition}:eks:{self.region}:{self.account}:cluster/{name}"

    def queue(self, name: str) -> str:
        """The ARN of a queue."""
        return f"arn:{self.partition}:sqs:{self.region}:{self.account}:{name}"

    def event_rule(self, name: str) -> str:
        """The ARN of a rule on the default event bus."""
        return f"arn:{self.partition}:events:{self.region}:{self.account}:rule/{name}"

    def aws_policy(self, name: str) -> str:
        """The ARN of a policy that AWS keeps."""
        return f"arn:{self.partition}:iam::aws:policy/{name}"

    def ec2_service(self) -> str:
        """EC2 as a principal, which has a name of its own in China."""
        return f"ec2.{_SUFFIX_IN_CHINA if self.partition == 'aws-cn' else _SUFFIX}"


#: Operator → condition key → the value or values it is held against.
Conditions: TypeAlias = Mapping[str, Mapping[str, "str | Sequence[str]"]]

_VERSION: Final = "2012-10-17"


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement of a policy.

    `principals` is for trust and resource policies alone: kind (`Service`, `AWS`) → names, or `*`.
    """

    sid: str
    actions: Sequence[str]
    resources: Sequence[str] = ()
    effect: Literal["Allow", "Deny"] = "Allow"
    conditions: Conditions = field(default_factory=dict[str, Mapping[str, "str | Sequence[str]"]])
    principals: Mapping[str, Sequence[str]] | Literal["*"] | None = None

    def as_statement(self) -> Json:
        """The statement as AWS spells it."""
        optional: dict[str, JsonValue] = {
            "Principal": self.principals,
            "Resource": list(self.resources),
            "Condition": self.conditions,
        }
        return {
            "Sid": self.sid,
            "Effect": self.effect,
            "Action": list(self.actions),
            **{name: value for name, value in optional.items() if value},
        }


def document(*statements: Statement) -> str:
    """A policy document of these statements."""
    return json.dumps(
        {"Version": _VERSION, "Statement": [statement.as_statement() for statement in statements]}
    )


def service_trust(service: str, *actions: str, conditions: Conditions | None = None) -> str:
    """The trust policy of a role that an AWS service assumes (`ec2.amazonaws.com`)."""
    return document(
        Statement(
            sid="Assume",
            actions=["sts:AssumeRole", *actions],
            principals={"Service": [service]},
            conditions=conditions or {},
        )
    )


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Pods that get an identity: those of one service account, in one namespace, of one cluster."""

    cluster_name: str
    namespace: str
    service_account: str


def pod_identity_trust(workload: Workload | None = None) -> str:
    """The trust policy of a role that pods get by EKS Pod Identity; only those of the workload, where one is given.

    TagSession too: the agent tags each session with cluster, namespace and service account, and is refused without.
    These tags are what tells workloads apart: without a condition on them, whoever may associate a role with a
    service account can give this one to any other.
    """
    conditions = {} if workload is None else {"StringEquals": _session_tags(workload)}
    return service_trust("pods.eks.amazonaws.com", "sts:TagSession", conditions=conditions)


def _session_tags(workload: Workload) -> Mapping[str, str]:
    return {
        "aws:RequestTag/eks-cluster-name": workload.cluster_name,
        "aws:RequestTag/kubernetes-namespace": workload.namespace,
        "aws:RequestTag/kubernetes-service-account": workload.service_account,
    }
