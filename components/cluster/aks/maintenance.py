"""When AKS may upgrade the cluster and its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi import ComponentResource, ResourceOptions
from pulumi_azure_native.containerservice import MaintenanceConfiguration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input
    from pulumi_azure_native.containerservice import MaintenanceWindowArgsDict

Day: TypeAlias = Literal["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

#: What AKS calls the three: the version of Kubernetes, the nodes' operating system (which node auto-provisioning looks
#: at too, before it takes up a new image), and AKS's own weekly releases of the control plane and of add-ons.
_SCHEDULES: Final[Mapping[str, str]] = {
    "version": "aksManagedAutoUpgradeSchedule",
    "node-os": "aksManagedNodeOSUpgradeSchedule",
    "releases": "default",
}

#: AKS takes 4 to 24.
_HOURS: Final = range(4, 25)


@dataclass(frozen=True, kw_only=True)
class NoUpgrades:
    """Days on which nothing is upgraded: the first and the last one, `2026-12-20`."""

    start: str
    end: str


@dataclass(frozen=True, kw_only=True)
class Maintenance:
    """The hours of the week in which AKS upgrades of its own accord.

    `start` is a time of day in UTC (`02:00`), `hours` from 4 to 24, `every_weeks` how many weeks there are from one such
    day to the next. `start_date` is the day from which on it holds (`2026-01-03`): written down and never "now", which
    would be a difference at each `up`. Raises ValueError for other hours.
    """

    day: Day
    start: str
    hours: int
    start_date: str
    every_weeks: int = 1
    exclusions: Sequence[NoUpgrades] = ()

    def __post_init__(self) -> None:
        """Refuse what AKS refuses a quarter of an hour later, when the cluster is there."""
        if self.hours not in _HOURS:
            raise ValueError(f"hours is {self.hours}: AKS takes from {_HOURS.start} to {_HOURS.stop - 1}")

    def as_window(self) -> MaintenanceWindowArgsDict:
        """The window as AKS spells it."""
        window: MaintenanceWindowArgsDict = {
            # The only schedule that all three kinds take.
            "schedule": {"weekly": {"day_of_week": self.day, "interval_weeks": self.every_weeks}},
            "start_time": self.start,
            "utc_offset": "+00:00",
            "duration_hours": self.hours,
            "start_date": self.start_date,
        }
        if self.exclusions:
            window["not_allowed_dates"] = [{"start": one.start, "end": one.end} for one in self.exclusions]
        return window


@dataclass(frozen=True, kw_only=True)
class MaintenanceScheduleArgs:
    """The hours, and the cluster: its resource group and its name as Azure gives it."""

    maintenance: Maintenance
    resource_group: Input[str]
    cluster: Input[str]


class MaintenanceSchedule(ComponentResource):
    """One window for all that AKS does to a cluster unasked.

    Creates a MaintenanceConfiguration for Kubernetes versions, one for the nodes' operating system and one for AKS's own
    releases. Without the second node auto-provisioning takes up new images when AKS sees fit.
    """

    def __init__(self, name: str, args: MaintenanceScheduleArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:MaintenanceSchedule", name, None, opts)
        for what, schedule in _SCHEDULES.items():
            MaintenanceConfiguration(
                f"{name}-{what}",
                config_name=schedule,
                resource_group_name=args.resource_group,
                resource_name_=args.cluster,
                maintenance_window=args.maintenance.as_window(),
                opts=ResourceOptions(parent=self),
            )
        self.register_outputs({})
