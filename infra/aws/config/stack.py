"""The configuration of an AWS stack: its document, and the region beside it."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from holdfast.components.namespace_permissions import NamespaceRole
from holdfast.infra.aws.config.cluster import AwsCluster, AwsClusterConfig, AwsExistingCluster
from holdfast.infra.aws.config.fields import (
    ACCOUNT_ALLOWED,
    BOUNDARY_ALLOWED,
    CREDENTIAL_ALLOWED,
    PATH_ALLOWED,
    PREFIX_ALLOWED,
    PRINCIPAL_ALLOWED,
    UPSTREAM_ALLOWED,
    AccountId,
    CredentialArn,
    IamPath,
    PolicyArn,
    PrincipalArn,
    RepositoryPrefix,
    Upstream,
    partition_of,
)
from holdfast.infra.aws.config.network import AwsNetworkConfig, default_network
from holdfast.infra.aws.config.pool import AwsPool
from holdfast.infra.config.base import Section
from holdfast.infra.config.clusters import AcceptedClusterSection
from holdfast.infra.config.stack import CloudDocument, RetainDays
from holdfast.scheduling.machines import Machine, machine_catalogue
from holdfast.scheduling.pools import Pool


class AwsCheckpoints(Section):
    """The S3 bucket for checkpoints."""

    fixes: ClassVar[Mapping[str, str]] = {
        "bucket": "Leave it out: the stack creates the bucket, and names it.",
        "directory": "Leave it out: on AWS, checkpoints are objects in a bucket.",
    }

    retain_days: RetainDays = 30
    kms: bool = Field(
        default=True,
        description="true to encrypt with the stack's own key, false with S3's key",
        examples=["true"],
    )
    drop_key: bool = Field(
        default=False,
        description="true, together with kms: false, to delete the key of earlier checkpoints, which become unreadable",
        examples=["true"],
    )


class AwsAccess(Section):
    """The access of an IAM principal to training namespaces."""

    fixes: ClassVar[Mapping[str, str]] = {
        "namespace": "Write namespaces, a list.",
        "groups": "Write role: submit or view grants what a group would.",
        "principalArn": "Write principal.",
        "policy": "Write role.",
    }

    principal: PrincipalArn = Field(
        description=PRINCIPAL_ALLOWED, examples=["arn:aws:iam::123456789012:role/ml"]
    )
    namespaces: tuple[str, ...] = Field(
        min_length=1, description="a list of training namespaces of this stack", examples=["[vision]"]
    )
    role: NamespaceRole = Field(
        default=NamespaceRole.SUBMIT,
        description="submit, to run jobs, or view, to read them",
        examples=["submit"],
    )


class AwsPullThroughCache(Section):
    """An upstream registry whose images ECR caches."""

    fixes: ClassVar[Mapping[str, str]] = {
        "ecrRepositoryPrefix": "Write prefix.",
        "upstreamRegistryUrl": "Write upstream.",
        "secretArn": "Write credentialArn.",
        "customRoleArn": "Leave it out: registries of ECR itself are not cached.",
    }

    prefix: RepositoryPrefix = Field(description=PREFIX_ALLOWED, examples=["docker-hub"])
    upstream: Upstream = Field(description=UPSTREAM_ALLOWED, examples=["registry-1.docker.io"])
    credential_arn: CredentialArn | None = Field(
        default=None,
        description=CREDENTIAL_ALLOWED,
        examples=[
            "arn:aws:secretsmanager:us-east-1:123456789012:secret:ecr-pullthroughcache/docker-hub-AbCdEf"
        ],
    )


class AwsIam(Section):
    """What every IAM role of the stack has."""

    fixes: ClassVar[Mapping[str, str]] = {"boundary": "Write permissionsBoundary.", "rolePath": "Write path."}

    permissions_boundary: PolicyArn | None = Field(
        default=None, description=BOUNDARY_ALLOWED, examples=["arn:aws:iam::123456789012:policy/boundary"]
    )
    path: IamPath = Field(default="/", description=PATH_ALLOWED, examples=["/holdfast/"])


class AwsDocument(CloudDocument):
    """The document under holdfast:platform."""

    fixes: ClassVar[Mapping[str, str]] = {
        "region": "Write aws:region beside holdfast:platform, where the AWS provider reads it.",
        "zones": "Move it to network.",
        "resourcePools": "Write pools; docs/determined.md has the table of fields.",
    }

    cloud: Literal["aws"] = Field(description="aws", examples=["aws"])
    account: AccountId | None = Field(default=None, description=ACCOUNT_ALLOWED, examples=['"123456789012"'])
    cluster: AwsClusterConfig = Field(
        default_factory=AwsCluster,
        description="a mapping of version, publicAccessCidrs, admins, systemNodes and other fields, or of existing",
        examples=["{publicAccessCidrs: [203.0.113.0/24]}"],
    )
    network: AwsNetworkConfig = Field(
        default_factory=default_network,
        description="a mapping of cidr, zones and nat, or of vpcId and privateSubnetIds",
        examples=["{cidr: 10.40.0.0/16, zones: 3}"],
    )
    pools: tuple[AwsPool, ...] = Field(
        description="a list of pools, exactly one of them with default: true",
        examples=[
            "[{name: cpu, capacity: on-demand, instanceTypes: [m7i.xlarge], maxNodes: 20, default: true}]"
        ],
    )
    checkpoints: AwsCheckpoints = Field(
        default_factory=AwsCheckpoints,
        description="a mapping of retainDays and kms",
        examples=["{retainDays: 30}"],
    )
    access: tuple[AwsAccess, ...] = Field(
        default=(),
        description="a list of principals, each with its namespaces and its role there",
        examples=["[{principal: arn:aws:iam::123456789012:role/ml, namespaces: [vision], role: submit}]"],
    )
    iam: AwsIam = Field(
        default_factory=AwsIam,
        description="a mapping of permissionsBoundary and path",
        examples=["{path: /holdfast/}"],
    )
    pull_through_cache: tuple[AwsPullThroughCache, ...] = Field(
        default=(),
        description="a list of upstream registries, each with the prefix of its repositories in the account's registry",
        examples=["[{prefix: quay, upstream: quay.io}]"],
    )
    accepts_from: tuple[AcceptedClusterSection, ...] = Field(
        default=(),
        max_length=1,
        description="a list of one cluster, with its issuer and its namespaces: an EKS cluster trusts one issuer beside its own",
        examples=[
            "[{name: us-east-1, issuer: https://oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF, namespaces: [vision]}]"
        ],
    )


class AwsPlatform(AwsDocument):
    """An AWS stack: its document, its region, and the role that the provider assumes; None for none."""

    region: str
    role_arn: str | None = None

    @property
    def partition(self) -> str:
        """The partition of the region: `aws`, `aws-cn` or `aws-us-gov`."""
        return partition_of(self.region)

    @property
    def has_efa(self) -> bool:
        """Whether any pool uses Elastic Fabric Adapters."""
        return any(pool.efa for pool in self.pools)

    def scheduling_pools(self) -> tuple[Pool, ...]:
        """The pools for the rules in `scheduling`, in their order."""
        return tuple(pool.as_pool(self.region) for pool in self.pools)

    @property
    def existing_cluster(self) -> str | None:
        """The name of the existing cluster; None if the stack creates one."""
        return self.cluster.existing if isinstance(self.cluster, AwsExistingCluster) else None

    def system_machines(self) -> tuple[Machine, ...]:
        """The machine types of the system nodes; none for an existing cluster."""
        if isinstance(self.cluster, AwsExistingCluster):
            return ()
        catalogue = machine_catalogue("aws")
        return tuple(catalogue[name] for name in self.cluster.system_nodes.instance_types)
