"""AWS policy documents, trust policies and the ARNs of resources with known names. No SDK needed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from pulumi_holdfast.ladder.json import Json, JsonValue

#: To join the cluster, assign pod addresses and pull images. Without AmazonSSMManagedInstanceCore, which
#: Karpenter's official template adds for shells on nodes: it lets every node read every parameter of the
#: account.
NODE_POLICIES: Final = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
)


#: The suffix of service principals and hosts outside China.
_SUFFIX: Final = "amazonaws.com"
_SUFFIX_IN_CHINA: Final = "amazonaws.com.cn"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where resources are: the 12-digit `account`, the `region` and the `partition` (`aws`, `aws-cn`, …)."""

    account: str
    region: str
    partition: str

    def role(self, name: str, path: str = "/") -> str:
        """The ARN of a role; `path` starts and ends with a slash."""
        return f"arn:{self.partition}:iam::{self.account}:role{path}{name}"

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
        """The ARN of an AWS managed policy."""
        return f"arn:{self.partition}:iam::aws:policy/{name}"

    def repositories(self, prefix: str) -> str:
        """The ARN of all ECR repositories below a prefix."""
        return f"arn:{self.partition}:ecr:{self.region}:{self.account}:repository/{prefix}/*"

    def registry(self) -> str:
        """The host of the account's ECR registry, which is different in China."""
        return f"{self.account}.dkr.ecr.{self.region}.{self._suffix()}"

    def ec2_service(self) -> str:
        """The service principal of EC2, which is different in China."""
        return f"ec2.{self._suffix()}"

    def _suffix(self) -> str:
        return _SUFFIX_IN_CHINA if self.partition == "aws-cn" else _SUFFIX


#: Operator → condition key → the value or values to compare with.
Conditions: TypeAlias = Mapping[str, Mapping[str, "str | Sequence[str]"]]

_VERSION: Final = "2012-10-17"


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement of a policy.

    `principals` is only for trust and resource policies: kind (`Service`, `AWS`) → names, or `*`.
    """

    sid: str
    actions: Sequence[str]
    resources: Sequence[str] = ()
    effect: Literal["Allow", "Deny"] = "Allow"
    conditions: Conditions = field(default_factory=dict[str, Mapping[str, "str | Sequence[str]"]])
    principals: Mapping[str, Sequence[str]] | Literal["*"] | None = None

    def as_statement(self) -> Json:
        """The statement in the form of the policy document."""
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
    """The pods of one service account in one namespace of one cluster."""

    cluster_name: str
    namespace: str
    service_account: str


def pod_identity_trust(workload: Workload | None = None) -> str:
    """The trust policy of a role for EKS Pod Identity, restricted to the pods of `workload` if given.

    TagSession is required because the agent tags each session with cluster, namespace and service account.
    Without a condition on these tags, a user that may create associations could give the role to any other
    service account.
    """
    conditions = {} if workload is None else {"StringEquals": _session_tags(workload)}
    return service_trust("pods.eks.amazonaws.com", "sts:TagSession", conditions=conditions)


def _session_tags(workload: Workload) -> Mapping[str, str]:
    return {
        "aws:RequestTag/eks-cluster-name": workload.cluster_name,
        "aws:RequestTag/kubernetes-namespace": workload.namespace,
        "aws:RequestTag/kubernetes-service-account": workload.service_account,
    }
