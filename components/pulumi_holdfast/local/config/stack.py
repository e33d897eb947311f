"""The configuration of a local stack: a control plane and simulated nodes on this machine."""

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from pydantic import Field

from pulumi_holdfast.config import versions
from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.clusters import ClustersField
from pulumi_holdfast.config.fields import FilePath
from pulumi_holdfast.config.ladder import ControllerSection
from pulumi_holdfast.config.namespace import MirrorSection
from pulumi_holdfast.config.reservation import ReservationSection
from pulumi_holdfast.config.stack import ControllerField, KarpenterPoolSection, NamespacesField
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue
from pulumi_holdfast.ladder.pools import Pool

#: The file with the instance types, as problems name it.
CATALOGUE: Final = "components/pulumi_holdfast/ladder/machines/local.json"


class LocalCluster(Section):
    """The control plane and the nodes of the operators."""

    version: str = Field(
        default=versions.KUBERNETES,
        description=f'the Kubernetes version in quotes, "{versions.KUBERNETES}"',
        examples=[f'"{versions.KUBERNETES}"'],
    )
    kubeconfig: FilePath = Field(
        default=".rehearsal/local/kubeconfig",
        description="the path of a kubeconfig, relative to the project's directory",
        examples=[".rehearsal/local/kubeconfig"],
    )
    system_nodes: int = Field(
        default=1, ge=1, le=9, description="a whole number of nodes, 1 to 9", examples=["1"]
    )


class LocalPool(KarpenterPoolSection):
    """Simulated nodes of one capacity type."""

    instance_types: tuple[str, ...] = Field(
        min_length=1,
        description="a list of one instance type or more, from " + CATALOGUE,
        examples=["[m7i.xlarge, m7a.xlarge]"],
    )

    reservation: ReservationSection | None = Field(
        default=None,
        description="a mapping of begins and ends, on a pool with capacity: reserved",
        examples=['{ends: "2026-12-08T11:30:00Z"}'],
    )

    def machines(self) -> tuple[Machine, ...]:
        """The pool's known machine types."""
        catalogue = machine_catalogue("local")
        return tuple(catalogue[name] for name in self.instance_types if name in catalogue)

    def as_pool(self) -> Pool:
        """The pool for the rules in `scheduling`."""
        return self.pool_of(self.machines(), self.reservation)


class LocalCheckpoints(Section):
    """The directory for checkpoints on this machine."""

    fixes: ClassVar[Mapping[str, str]] = {
        "retainDays": "Leave it out: a directory keeps no old versions of files.",
        "bucket": "Write directory: on this machine, checkpoints are files.",
    }

    directory: FilePath = Field(
        default=".rehearsal/local/checkpoints",
        description="the path of a directory, relative to the project's directory",
        examples=[".rehearsal/local/checkpoints"],
    )


class LocalPlatform(Section):
    """A local stack: its document."""

    cloud: Literal["local"] = Field(description="local", examples=["local"])
    cluster: LocalCluster = Field(
        default_factory=LocalCluster,
        description="a mapping of version, kubeconfig and systemNodes",
        examples=["{systemNodes: 1}"],
    )
    mirror: MirrorSection = Field(
        default_factory=MirrorSection, description="a mapping of charts", examples=["{charts: .tools/charts}"]
    )
    pools: tuple[LocalPool, ...] = Field(
        description="a list of pools, exactly one of them with default: true",
        examples=[
            "[{name: cpu, capacity: on-demand, instanceTypes: [m7i.xlarge], maxNodes: 20, default: true}]"
        ],
    )
    checkpoints: LocalCheckpoints = Field(
        default_factory=LocalCheckpoints,
        description="a mapping of directory",
        examples=["{directory: .rehearsal/local/checkpoints}"],
    )
    fallback: ControllerField = Field(default_factory=ControllerSection)
    namespaces: NamespacesField = ()
    clusters: ClustersField = ()
