"""The fields that every pool has, on every cloud."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from holdfast.infra.config.fields import NAME_ALLOWED, DnsLabel
from holdfast.infra.config.section import Section
from holdfast.scheduling.labels import CapacityType


class PoolSection(Section):
    """Nodes of one capacity type."""

    fixes: ClassVar[Mapping[str, str]] = {
        "spot": "Write capacity: spot, or capacity: on-demand.",
        "poolName": "Write name.",
        "maxInstances": "Write maxNodes.",
    }

    name: DnsLabel = Field(description=NAME_ALLOWED, examples=["a100-spot"])
    capacity: CapacityType = Field(description="spot or on-demand, one of the two", examples=["spot"])
    max_nodes: int = Field(ge=1, le=1000, description="a whole number of nodes, 1 to 1000", examples=["8"])
    default: bool = Field(
        default=False,
        description="true on the one pool for pods that ask for nothing, false elsewhere",
        examples=["true"],
    )
