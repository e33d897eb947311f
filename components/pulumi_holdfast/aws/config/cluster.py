"""The configuration of an EKS cluster: version and support, access to the API server, logs, system nodes; or an existing one."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Final, TypeAlias

from pydantic import Field

from pulumi_holdfast.aws.config.fields import (
    CLUSTER_NAME_ALLOWED,
    KEY_ALLOWED,
    PRINCIPAL_ALLOWED,
    EksClusterName,
    KeyArn,
    PrincipalArn,
)
from pulumi_holdfast.config import versions
from pulumi_holdfast.config.base import Section, Variant
from pulumi_holdfast.config.existing import ExistingCluster, fixes_beside_existing, is_existing_cluster
from pulumi_holdfast.config.fields import CIDR_ALLOWED, Cidr, KubernetesVersion


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


class UpgradePolicy(StrEnum):
    """What EKS does when the standard support of a Kubernetes version ends."""

    EXTENDED = "extended"
    STANDARD = "standard"


class LogType(StrEnum):
    """The logs of an EKS control plane, as EKS names them."""

    API = "api"
    AUDIT = "audit"
    AUTHENTICATOR = "authenticator"
    CONTROLLER_MANAGER = "controllerManager"
    SCHEDULER = "scheduler"


#: The retention periods that CloudWatch accepts, in days.
RETENTION_DAYS: Final = (
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
)  # fmt: skip


class AwsLogs(Section):
    """The control plane's logs in CloudWatch."""

    fixes: ClassVar[Mapping[str, str]] = {
        "retention": "Write retainDays.",
        "retentionInDays": "Write retainDays.",
    }

    types: tuple[LogType, ...] = Field(
        default=tuple(LogType),
        description=f"a list of {', '.join(LogType)}; an empty list for no logs",
        examples=["[audit, authenticator]"],
    )
    retain_days: int = Field(
        default=90,
        description=f"a number of days that CloudWatch accepts: {', '.join(map(str, RETENTION_DAYS))}",
        examples=["90"],
    )


class AwsCluster(Section):
    """The control plane."""

    fixes: ClassVar[Mapping[str, str]] = {
        "kubeconfig": "Leave it out: the program gets a token from EKS whenever it needs one.",
        "endpointPublicAccess": "Write publicAccessCidrs; without it the endpoint is private.",
        "encryptionKey": "Write secretsKey.",
        "supportType": "Write upgradePolicy.",
        "logRetentionDays": "Write logs: {retainDays: …}.",
        "access": "Write it beside cluster.",
    }

    version: KubernetesVersion = versions.KUBERNETES
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
    secrets_key: KeyArn | None = Field(
        default=None,
        description=KEY_ALLOWED,
        examples=["arn:aws:kms:us-east-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"],
    )
    upgrade_policy: UpgradePolicy = Field(
        default=UpgradePolicy.EXTENDED,
        description="extended, which costs more after the standard support of the version, or standard, with which EKS then "
        "upgrades the control plane by itself",
        examples=["standard"],
    )
    logs: AwsLogs = Field(
        default_factory=AwsLogs,
        description="a mapping of types and retainDays",
        examples=["{retainDays: 30}"],
    )
    system_nodes: AwsSystemNodes = Field(
        default_factory=AwsSystemNodes,
        description="a mapping of instanceTypes and count",
        examples=["{count: 2}"],
    )


class AwsExistingCluster(ExistingCluster):
    """An existing EKS cluster in the stack's region."""

    fixes: ClassVar[Mapping[str, str]] = fixes_beside_existing(AwsCluster, ("existing",))

    existing: EksClusterName = Field(description=CLUSTER_NAME_ALLOWED, examples=["shared"])


def cluster_variant(value: object) -> type[AwsCluster] | type[AwsExistingCluster]:
    """The section for a value: an existing cluster if it names one."""
    return AwsExistingCluster if is_existing_cluster(value) else AwsCluster


AwsClusterConfig: TypeAlias = Annotated[AwsCluster | AwsExistingCluster, Variant(cluster_variant)]
