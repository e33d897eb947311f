"""IAM: what AWS adds and refuses."""

from collections.abc import Mapping

from rehearsal.providers.cloud.aws.names import arn
from rehearsal.providers.cloud.catalogue import Rules

RESOURCES: Mapping[str, Rules] = {
    "aws:iam/policy:Policy": Rules(longest_name=128, identify=arn),
    "aws:iam/role:Role": Rules(
        longest_name=64, taken="EntityAlreadyExists: Role with name {name} already exists."
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Rules(immutable=frozenset({"role", "policyArn"})),
}
