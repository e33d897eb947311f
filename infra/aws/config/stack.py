"""The configuration of an AWS stack: its document, and the region beside it."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from holdfast.infra.aws.config.cluster import AwsCluster
from holdfast.infra.aws.config.fields import ACCOUNT_ALLOWED, AccountId, partition_of
from holdfast.infra.aws.config.network import AwsNetworkConfig, AwsNewNetwork
from holdfast.infra.aws.config.pool import AwsPool
from holdfast.infra.config.base import Section
from holdfast.infra.config.stack import CloudDocument
from holdfast.scheduling.machines import Architecture, Machine, machine_catalogue
from holdfast.scheduling.pools import Pool


class AwsCheckpoints(Section):
    """The S3 bucket for checkpoints."""

    fixes: ClassVar[Mapping[str, str]] = {
        "bucket": "Leave it out: the stack creates the bucket, and names it.",
        "directory": "Leave it out: on AWS, checkpoints are objects in a bucket.",
    }

    retain_days: int = Field(
        default=30,
        ge=1,
        le=3650,
        description="a whole number of days, 1 to 3650, for which overwritten and deleted checkpoints are kept",
        examples=["30"],
    )
    kms: bool = Field(
        default=True,
        description="true to encrypt with the stack's own key, false with S3's key",
        examples=["true"],
    )


class AwsDocument(CloudDocument):
    """The document under holdfast:platform."""

    fixes: ClassVar[Mapping[str, str]] = {
        "region": "Write aws:region beside holdfast:platform, where the AWS provider reads it.",
        "zones": "Move it to network.",
        "resourcePools": "Write pools; `holdfast determined FILE` turns Determined's list into it.",
    }

    cloud: Literal["aws"] = Field(description="aws", examples=["aws"])
    account: AccountId | None = Field(default=None, description=ACCOUNT_ALLOWED, examples=['"123456789012"'])
    cluster: AwsCluster = Field(
        default_factory=AwsCluster,
        description="a mapping of version, publicAccessCidrs, admins, systemNodes and other fields",
        examples=["{publicAccessCidrs: [203.0.113.0/24]}"],
    )
    network: AwsNetworkConfig = Field(
        default_factory=AwsNewNetwork,
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


class AwsPlatform(AwsDocument):
    """An AWS stack: its document and its region."""

    region: str

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
    def system_architecture(self) -> Architecture:
        """The one architecture of the system nodes."""
        return self.system_machines()[0].arch

    def system_machines(self) -> tuple[Machine, ...]:
        """The machine types of the system nodes."""
        catalogue = machine_catalogue("aws")
        return tuple(catalogue[name] for name in self.cluster.system_nodes.instance_types)
