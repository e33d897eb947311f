"""GCP's projects, regions and zones: which names can be. Pure."""

import re
from difflib import get_close_matches
from typing import Final

from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.machines import regions, zones_of

#: The keys under which a stack names its project and region: the GCP provider's own, so that no second ones can differ.
PROJECT: Final = "gcp:project"
REGION: Final = "gcp:region"

_PROJECT_ID: Final = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", re.ASCII)
_PROJECT_ALLOWED: Final = "the id of a project: 6 to 30 lower-case letters, digits and hyphens"
_EXAMPLE: Final = f"Write, for example, `{REGION}: us-central1` beside holdfast:platform."


def project_problem(project: str | None) -> Problem | None:
    """What is wrong with a stack's project; None for an id that a project can have."""
    if project is None:
        return Problem(
            field=PROJECT,
            value="nothing",
            allowed=_PROJECT_ALLOWED,
            fix=f"Add `{PROJECT}: my-project` beside holdfast:platform; `gcloud projects list` shows the ids.",
        )
    if _PROJECT_ID.fullmatch(project):
        return None
    number = re.fullmatch(r"[0-9]+", project, re.ASCII)
    return Problem(
        field=PROJECT,
        value=shown(project),
        allowed=_PROJECT_ALLOWED,
        fix=f"Write the id that belongs to this number: `gcloud projects describe {project}` shows it."
        if number
        else "Write the id, and not the name, that `gcloud projects list` shows.",
    )


def region_problem(region: str | None) -> Problem | None:
    """What is wrong with a stack's region; None for one that there is."""
    known = regions("gcp")
    if region is None:
        return Problem(
            field=REGION, value="nothing", allowed="the region of the stack", fix=f"Add it. {_EXAMPLE}"
        )
    if region in known:
        return None
    close = get_close_matches(re.sub(r"-[a-z]$", "", region), known, n=1)
    return Problem(
        field=REGION,
        value=shown(region),
        allowed=", ".join(sorted(known)),
        fix=f'Write "{close[0]}".' if close else _EXAMPLE,
    )


def is_zone_of(zone: str, region: str) -> bool:
    """Whether a zone is one of a region's; any letter is, where the region's zones are not known."""
    known = zones_of(region)
    return zone in known if known else zone[:-2] == region


def zone_problem(zone: str, region: str, field: str) -> Problem | None:
    """What is wrong with a zone for a stack in a region."""
    if is_zone_of(zone, region):
        return None
    there = zones_of(region)
    same_letter = f"{region}-{zone[-1]}"
    return Problem(
        field=field,
        value=shown(zone),
        allowed=f"zones of {region}, the stack's region: {', '.join(there)}",
        fix=f'Write "{same_letter if same_letter in there else there[0]}", or change {REGION}.',
    )
