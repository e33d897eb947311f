"""The configuration of an EKS cluster: version, access to the API server, system nodes."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from holdfast.infra import versions
from holdfast.infra.aws.config.fields import PRINCIPAL_ALLOWED, PrincipalArn
from holdfast.infra.config.base import Section
from holdfast.infra.config.fields import CIDR_ALLOWED, Cidr


class AwsSystemNodes(Section):
    """The on-demand nodes of the operators, which belong to no pool."""

    instance_types: tuple[str, ...] = Field(
        default=("m7i.large", "m6i.large", "m7a.large"),
        min_length=1,
        description="a list of one instance type or more, without GPUs",
        examples=["[m7i.large, m6i.large]"],
    )
    # The two replicas of Karpenter need two nodes in two zones.
    count: int = Field(default=2, ge=2, le=10, description="a whole number of nodes, 2 to 10", examples=["2"])


class AwsCluster(Section):
    """The control plane."""

    fixes: ClassVar[Mapping[str, str]] = {
        "kubeconfig": "Leave it out: the program gets a token from EKS whenever it needs one.",
        "endpointPublicAccess": "Write publicAccessCidrs; without it the endpoint is private.",
    }

    version: str = Field(
        default=versions.KUBERNETES,
        description=f'a Kubernetes version in quotes, "{versions.KUBERNETES}" or later',
        examples=[f'"{versions.KUBERNETES}"'],
    )
    public_access_cidrs: tuple[Cidr, ...] = Field(
        default=(),
        max_length=40,
        description=f"a list of up to 40 items, each {CIDR_ALLOWED}",
        examples=["[203.0.113.0/24]"],
    )
    allow_public_access_from_anywhere: bool = Field(
        default=False, description="true or false", examples=["false"]
    )
    private_access_cidrs: tuple[Cidr, ...] = Field(
        default=(),
        description="a list of address blocks in the network, or in networks connected to it",
        examples=["[10.0.0.0/8]"],
    )
    service_cidr: Cidr = Field(
        default="172.20.0.0/16",
        description="a private block of /12 to /24 for the addresses of Services, outside the network's",
        examples=["172.20.0.0/16"],
    )
    admins: tuple[PrincipalArn, ...] = Field(
        default=(),
        description=f"a list of administrators, each {PRINCIPAL_ALLOWED}",
        examples=["[arn:aws:iam::123456789012:role/platform]"],
    )
    system_nodes: AwsSystemNodes = Field(
        default_factory=AwsSystemNodes,
        description="a mapping of instanceTypes and count",
        examples=["{count: 2}"],
    )
