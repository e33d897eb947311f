"""When an AKS cluster is upgraded, when not, and what of it upgrades itself."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import BeforeValidator, Field

from holdfast.infra.config.fields import refusal
from holdfast.infra.config.section import Section
from holdfast.infra.config.times import DATE_ALLOWED, TIME_ALLOWED, Day, TimeOfDay, Weekday

#: A Saturday on which there was no stack yet: AKS wants a day from which on a window holds, and one that moved would be a
#: difference at every update.
_FROM: Final = "2026-01-03"

#: Channels of AKS that go on to the next minor version, or that stand for nodeOs.
_OTHER_CHANNELS: Final = ("stable", "rapid", "node-image")


class ClusterChannel(StrEnum):
    """Which versions of Kubernetes come by themselves."""

    NONE = "none"
    PATCH = "patch"


class NodeOsChannel(StrEnum):
    """How the nodes' operating system is kept up to date, as AKS spells it."""

    NONE = "None"
    UNMANAGED = "Unmanaged"
    SECURITY_PATCH = "SecurityPatch"
    NODE_IMAGE = "NodeImage"


def _cluster_channel(value: object) -> object:
    if value in _OTHER_CHANNELS:
        raise refusal(
            "Write patch, and another `cluster.version` when you want it: where a channel had gone on to the next minor version, "
            "the next `pulumi up` would go back, which AKS refuses. The nodes' images are nodeOs."
        )
    return value


class AzureUpgrades(Section):
    """What AKS upgrades of its own accord, in the window."""

    fixes: ClassVar[Mapping[str, str]] = {
        "version": "Write cluster.",
        "channel": "Write cluster, and nodeOs for the nodes' operating system.",
    }

    cluster: Annotated[ClusterChannel, BeforeValidator(_cluster_channel)] = Field(
        default=ClusterChannel.NONE,
        description="none or patch: which versions of Kubernetes come by themselves",
        examples=["patch"],
    )
    node_os: NodeOsChannel = Field(
        default=NodeOsChannel.SECURITY_PATCH,
        description="None, Unmanaged, SecurityPatch or NodeImage: how nodes get a newer operating system",
        examples=["SecurityPatch"],
    )


class AzureMaintenanceWindow(Section):
    """When AKS may upgrade: one stretch of hours in a week."""

    fixes: ClassVar[Mapping[str, str]] = {"days": "Write day: AKS takes one stretch of hours a week."}

    day: Weekday = Field(
        default=Weekday.SATURDAY, description="a day of the week, such as saturday", examples=["saturday"]
    )
    start: TimeOfDay = Field(default="02:00", description=TIME_ALLOWED, examples=['"02:00"'])
    hours: int = Field(default=8, ge=4, le=24, description="a whole number of hours, 4 to 24", examples=["8"])

    every_weeks: int = Field(
        default=1, ge=1, le=4, description="a whole number of weeks, 1 to 4", examples=["2"]
    )
    start_date: Day = Field(
        default=_FROM,
        description=f"{DATE_ALLOWED}: one from which on it holds, and from which everyWeeks counts",
        examples=[f'"{_FROM}"'],
    )


class AzureMaintenanceExclusion(Section):
    """Days on which AKS upgrades nothing of its own accord."""

    fixes: ClassVar[Mapping[str, str]] = {"from": "Write start.", "until": "Write end.", "to": "Write end."}

    start: Day = Field(description=DATE_ALLOWED, examples=['"2026-12-20"'])
    end: Day = Field(description=f"{DATE_ALLOWED}, the last of them", examples=['"2027-01-06"'])


class AzureMaintenance(Section):
    """When the cluster and its nodes are upgraded, and when not."""

    fixes: ClassVar[Mapping[str, str]] = {"exclusion": "Write exclusions, a list."}

    window: AzureMaintenanceWindow = Field(
        default_factory=AzureMaintenanceWindow,
        description="a mapping of day, start, hours, everyWeeks and startDate",
        examples=['{day: saturday, start: "02:00", hours: 8}'],
    )
    exclusions: tuple[AzureMaintenanceExclusion, ...] = Field(
        default=(),
        description="a list of days without upgrades, each a mapping of start and end",
        examples=['[{start: "2026-12-20", end: "2027-01-06"}]'],
    )
