"""The names of the AWS services that are reached by endpoints. Pure."""

from typing import Final

#: What nodes, the add-ons and Karpenter call: EC2 and SSM (machines, images), EKS and its Pod Identity, STS, the
#: interruption queue, and the registry of images. The registry's layers come from S3, by the gateway endpoint.
ISOLATED_SERVICES: Final = ("ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "sqs", "ssm", "sts")

#: In China most services' names begin otherwise, and these do not.
_UNPREFIXED_IN_CHINA: Final = frozenset({"eks-auth", "ssm"})


def interface_service(region: str, service: str) -> str:
    """The name of a service's interface endpoint in a region."""
    prefix = "cn." if region.startswith("cn-") and service not in _UNPREFIXED_IN_CHINA else ""
    return f"{prefix}com.amazonaws.{region}.{service}"


def s3_service(region: str) -> str:
    """The name of S3's gateway endpoint in a region."""
    return f"com.amazonaws.{region}.s3"
