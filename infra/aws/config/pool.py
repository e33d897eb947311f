"""A pool on AWS: a NodePool and its EC2NodeClass."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from holdfast.infra.aws.config.fields import Zone
from holdfast.infra.config.stack import KarpenterPoolSection
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import Machine, machine_catalogue, select_machines
from holdfast.scheduling.pools import Pool


class AwsPool(KarpenterPoolSection):
    """Machines of one capacity type, named one by one or by family and size."""

    fixes: ClassVar[Mapping[str, str]] = {
        **KarpenterPoolSection.fixes,
        "subnetIds": "Write zones; the subnets are the network's.",
        "rootVolumeSize": "Write volumeGiB.",
        "imageId": "Leave it out: the image is pinned for the whole stack.",
        "minNodes": "Leave it out: a pool has the machines that its pods need, down to none.",
    }

    instance_types: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="a list of one instance type or more",
        examples=["[p4d.24xlarge, p4de.24xlarge]"],
    )
    families: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="a list of one family or more, with sizes beside it",
        examples=["[m7i, m7a, m6i]"],
    )
    sizes: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="a list of one size or more, with families beside it",
        examples=["[xlarge, 2xlarge]"],
    )
    zones: tuple[Zone, ...] | None = Field(
        default=None,
        min_length=1,
        description="a list of one zone or more of the stack's network",
        examples=["[us-east-1a]"],
    )
    efa: bool = Field(
        default=False,
        description="true for machines that all have an Elastic Fabric Adapter, false for any",
        examples=["true"],
    )
    placement_group: bool = Field(
        default=False,
        description="true to keep the pool's machines close together in one zone, false elsewhere",
        examples=["true"],
    )
    volume_gib: int = Field(
        default=100,
        alias="volumeGiB",
        ge=30,
        le=16384,
        description="a whole number of GiB, 30 to 16384",
        examples=["100"],
    )
    roll_out: bool = Field(
        default=False,
        description="true while machines may be replaced by such as the configuration now says, else false",
        examples=["true"],
    )

    def machines(self, region: str) -> tuple[Machine, ...]:
        """The pool's machine types, as far as they are known.

        Of those that are named by family, the ones that the region sells, and on a spot pool sells on spot.
        """
        catalogue = machine_catalogue("aws")
        if self.instance_types is not None:
            return tuple(catalogue[name] for name in self.instance_types if name in catalogue)
        selected = select_machines(self.families or (), self.sizes or (), catalogue, region)
        return tuple(
            machine for machine in selected if machine.on_spot or self.capacity is not CapacityType.SPOT
        )

    def as_pool(self, region: str) -> Pool:
        """The pool as the rules know it."""
        return Pool(
            name=self.name,
            capacity=self.capacity,
            has_gpus=any(machine.gpus for machine in self.machines(region)),
            max_nodes=self.max_nodes,
            is_default=self.default,
        )
