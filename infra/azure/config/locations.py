"""Azure's locations, subscriptions and tenants: which values can be. Pure."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from holdfast.infra.azure.config.fields import is_guid
from holdfast.infra.config import rules
from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.machines import regions, zones_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The keys under which a stack names these: the Azure provider's own, so that no second ones can differ.
LOCATION: Final = "azure-native:location"
SUBSCRIPTION: Final = "azure-native:subscriptionId"
TENANT: Final = "azure-native:tenantId"

_EXAMPLE: Final = f"Write, for example, `{LOCATION}: eastus2` beside holdfast:platform."


def location_problem(location: str | None) -> Problem | None:
    """What is wrong with a stack's location; None for one that there is."""
    if location is None:
        return Problem(
            field=LOCATION, value="nothing", allowed="the location of the stack", fix=f"Add it. {_EXAMPLE}"
        )
    known = regions("azure")
    if location in known:
        return None
    # The portal shows "East US 2", and Azure takes that too: but not in a node's zone, nor in a NodePool's.
    close = get_close_matches(re.sub(r"[^a-z0-9]", "", location.lower()), known, n=1)
    return Problem(
        field=LOCATION,
        value=shown(location),
        allowed="a location of Azure's, as `az account list-locations --query [].name` spells them",
        fix=f'Write "{close[0]}".' if close else _EXAMPLE,
    )


def subscription_problem(subscription: str | None) -> Problem | None:
    """What is wrong with a stack's subscription; None for an id, and where the credentials' own is meant."""
    return _id_problem(SUBSCRIPTION, subscription, "a subscription", "az account show --query id")


def tenant_problem(tenant: str | None) -> Problem | None:
    """What is wrong with a stack's tenant; None for an id, and where the credentials' own is meant."""
    return _id_problem(TENANT, tenant, "a tenant of Entra ID", "az account show --query tenantId")


def _id_problem(key: str, given: str | None, what: str, command: str) -> Problem | None:
    if given is None or is_guid(given):
        return None
    return Problem(
        field=key,
        value=shown(given),
        allowed=f"the id of {what}, a GUID, or nothing for that of the credentials",
        fix=f"Write the id, and not the name, that `{command}` prints; or leave it out.",
    )


def zones_here(location: str) -> tuple[str, ...]:
    """The zones of a location by number; none where it has none."""
    return tuple(zone.rpartition("-")[2] for zone in zones_of(location))


def zone_problems(zones: Sequence[str], location: str | None, at: str) -> Iterator[Problem]:
    """Zones that a location does not have, and such as stand there twice; `location` is None where it is not known."""
    yield from rules.repeated(zones, at, "zone")
    if location is None or not zones:
        return
    there = zones_here(location)
    for index, zone in enumerate(zones):
        if zone not in there:
            yield Problem(
                field=f"{at}[{index}]" if there else at,
                value=f"{zone} in {location}"
                if there
                else f"{', '.join(zones)} in {location}, which has no zones",
                allowed=f"the zones that it has: {', '.join(there)}" if there else "none there",
                fix=f"Write {there[0]}." if there else f"Leave it out, or change {LOCATION}.",
            )
            if not there:
                return
