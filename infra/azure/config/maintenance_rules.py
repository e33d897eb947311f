"""The rules of when an AKS cluster is upgraded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.infra.azure.config.maintenance import AzureMaintenance, AzureMaintenanceExclusion


def maintenance_problems(maintenance: AzureMaintenance, at: str) -> Iterator[Problem]:
    """Exclusions that end before they begin, or hold days of one another."""
    exclusions = maintenance.exclusions
    for index, exclusion in enumerate(exclusions):
        field = f"{at}.exclusions[{index}]"
        if exclusion.end < exclusion.start:
            yield Problem(
                field=f"{field}.end",
                value=f"{exclusion.end}, while it starts on {exclusion.start}",
                allowed="the day of the start, or a later one: it is the last day without upgrades",
                fix="Write a later one.",
            )
        else:
            yield from _overlap(exclusion, exclusions[:index], field, at)


def _overlap(
    exclusion: AzureMaintenanceExclusion, before: Sequence[AzureMaintenanceExclusion], field: str, at: str
) -> Iterator[Problem]:
    for index, other in enumerate(before):
        # Days are written year first, and so compare as texts.
        if other.start <= exclusion.end and exclusion.start <= other.end:
            yield Problem(
                field=field,
                value=f"{exclusion.start} to {exclusion.end}, of which some are in {at}.exclusions[{index}]",
                allowed="days that no other exclusion has",
                fix=f"Make one of the two: {min(exclusion.start, other.start)} to {max(exclusion.end, other.end)}.",
            )
            return
