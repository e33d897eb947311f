"""ARNs of things whose names are known, so that a policy is readable before they exist. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
