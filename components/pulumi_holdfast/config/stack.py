"""The sections that the stacks of every cloud share: the document, mirrors, pools."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, TypeAlias

from pydantic import Field

from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.clusters import ClustersField
from pulumi_holdfast.config.fields import NAME_ALLOWED, ChartSource, DnsLabel, ImageSource
from pulumi_holdfast.config.ladder import ControllerSection
from pulumi_holdfast.config.namespace import NamespaceSection
from pulumi_holdfast.config.reservation import ReservationSection
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.windows import ALWAYS

RetainDays: TypeAlias = Annotated[
    int,
    Field(
        ge=1,
        le=3650,
        description="a whole number of days, 1 to 3650, for which overwritten and deleted checkpoints are kept",
        examples=["30"],
    ),
]
ControllerField: TypeAlias = Annotated[
    ControllerSection,
    Field(
        description="a mapping of image, for the controller that moves jobs along their ladders",
        examples=["{image: registry.example.com/fallback-controller:0.1.0}"],
    ),
]
NamespacesField: TypeAlias = Annotated[
    tuple[NamespaceSection, ...],
    Field(
        description="a list of training namespaces, each with its ladder",
        examples=["[{name: vision, ladder: [{pool: cpu}]}]"],
    ),
]


class PoolSection(Section):
    """Nodes of one capacity type."""

    fixes: ClassVar[Mapping[str, str]] = {
        "spot": "Write capacity: spot, or capacity: on-demand.",
        "reserved": "Write capacity: reserved, and the reservation.",
        "poolName": "Write name.",
        "maxInstances": "Write maxNodes.",
    }

    name: DnsLabel = Field(description=NAME_ALLOWED, examples=["a100-spot"])
    capacity: CapacityType = Field(
        description="spot, on-demand or reserved, one of the three", examples=["spot"]
    )
    max_nodes: int = Field(ge=1, le=1000, description="a whole number of nodes, 1 to 1000", examples=["8"])
    default: bool = Field(
        default=False,
        description="true on the one pool for pods that name no pool, false on others",
        examples=["true"],
    )

    def pool_of(self, machines: Sequence[Machine], reservation: ReservationSection | None = None) -> Pool:
        """The pool for the rules in `scheduling`, with its known machines."""
        return Pool(
            name=self.name,
            capacity=self.capacity,
            has_gpus=any(machine.gpus for machine in machines),
            max_nodes=self.max_nodes,
            is_default=self.default,
            window=ALWAYS if reservation is None else reservation.window,
        )


#: Names of other tools for the price cap of spot machines.
PRICE_CAPS: Final = ("spotMaxPrice", "spot_max_price", "maxPrice")

_NO_PRICE_CAP = "Leave it out: Karpenter has no field that holds a price cap. Write maxPrice on the tiers of the ladder that use the pool."


class KarpenterPoolSection(PoolSection):
    """Nodes of one capacity type."""

    fixes: ClassVar[Mapping[str, str]] = {
        **PoolSection.fixes,
        "instanceType": "Write instanceTypes, a list.",
        **dict.fromkeys(PRICE_CAPS, _NO_PRICE_CAP),
    }


class CloudMirror(Section):
    """Where charts and images come from; by default from their upstream registries."""

    charts: ChartSource | None = Field(
        default=None,
        description="a directory, or an address that starts with oci:// or https://",
        examples=["oci://registry.example.com/charts"],
    )
    images: ImageSource | None = Field(
        default=None,
        description="a registry's host and, after a slash, the path of its images",
        examples=["registry.example.com/mirror"],
    )


#: The highest budget in USD an hour: a higher one is a mistake.
HIGHEST_BUDGET: Final = 1_000_000


class CloudDocument(Section):
    """The document under holdfast:platform of a stack on any cloud."""

    protected: bool = Field(
        default=True,
        description="true to protect the cluster and the checkpoints from destruction, false otherwise",
        examples=["false"],
    )
    budget: float | None = Field(
        default=None,
        gt=0,
        le=HIGHEST_BUDGET,
        description=f"the most that the stack may cost with full pools, in USD an hour: above 0, up to {HIGHEST_BUDGET}",
        examples=["400"],
    )
    mirror: CloudMirror = Field(
        default_factory=CloudMirror,
        description="a mapping of charts and images",
        examples=["{images: registry.example.com/mirror}"],
    )
    fallback: ControllerField = Field(default_factory=ControllerSection)
    namespaces: NamespacesField = ()
    clusters: ClustersField = ()
