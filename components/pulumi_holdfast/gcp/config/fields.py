"""Types of single GCP values (machine types, zones, keys, networks), and the rules of projects and regions."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator

from pulumi_holdfast.config import errors
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.fields import error_with_fix, matching, not_a_list
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.machines import regions, zones_of

ZONE_ALLOWED: Final = "a zone, such as us-central1-a"
MACHINE_ALLOWED: Final = "one machine type of Compute Engine"
KEY_ALLOWED: Final = "the name of a key: projects/…/locations/…/keyRings/…/cryptoKeys/…"
CLUSTER_NAME_ALLOWED: Final = "the name of a GKE cluster in the stack's project and region"
NETWORK_ALLOWED: Final = (
    "the name of a network of the project, or projects/…/global/networks/… of another project"
)
SUBNETWORK_ALLOWED: Final = (
    "the name of a subnetwork of the project, or projects/…/regions/…/subnetworks/… of another project"
)
RESERVATION_ALLOWED: Final = "the name of a specifically targeted reservation, or projects/…/reservations/… with, if needed, /reservationBlocks/…"
RANGE_ALLOWED: Final = "the name of a secondary range of the subnetwork"

_NAME: Final = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
_PROJECT: Final = r"[a-z][-a-z0-9.:]{4,61}[a-z0-9]"
_KEY_PART: Final = r"[A-Za-z0-9_-]{1,63}"
_KEY: Final = re.compile(
    rf"projects/{_PROJECT}/locations/[a-z0-9-]+/keyRings/{_KEY_PART}/cryptoKeys/{_KEY_PART}", re.ASCII
)
_LINK: Final = re.compile(r"https://[a-z.]+/compute/[a-z0-9]+/")


def _key(text: str) -> str:
    without_version = re.sub(r"/cryptoKeyVersions/[0-9]+$", "", text)
    if without_version != text and _KEY.fullmatch(without_version):
        raise error_with_fix(f'Write the key without its version, which rotates: "{without_version}".')
    if not _KEY.fullmatch(text):
        raise error_with_fix("Write the name from `gcloud kms keys list --keyring RING --location REGION`.")
    return text


def _linked(prefix: str, command: str, suffix: str = "") -> AfterValidator:
    """The name of a resource of Compute Engine: a link to it is corrected to its path."""
    shape = re.compile(rf"({prefix})?{_NAME}{suffix}", re.ASCII)

    def check(text: str) -> str:
        path = _LINK.sub("", text)
        if path != text and shape.fullmatch(path):
            raise error_with_fix(f'Write "{path}".')
        if not shape.fullmatch(text):
            raise error_with_fix(
                f"Write one that `gcloud compute {command} list --format='value(name)'` prints."
            )
        return text

    return AfterValidator(check)


MachineType = Annotated[
    str,
    BeforeValidator(
        not_a_list(
            "Write one of them: a GKE node pool has one machine type. If it is often out of capacity, list more zones, "
            "or add a pool for each type and a tier for each pool."
        )
    ),
]
Zone = Annotated[
    str,
    matching(
        r"[a-z]+-[a-z]+[0-9]+-[a-z]",
        "Write a region, a hyphen and the letter of one of its zones, such as us-central1-a.",
    ),
]
KeyName = Annotated[str, AfterValidator(_key)]
GkeClusterName = Annotated[
    str,
    matching(
        r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?",
        "Write one that `gcloud container clusters list --format='value(name)'` prints.",
    ),
]
NetworkName = Annotated[str, _linked(rf"projects/{_PROJECT}/global/networks/", "networks")]
SubnetworkName = Annotated[
    str, _linked(rf"projects/{_PROJECT}/regions/[a-z0-9-]+/subnetworks/", "networks subnets")
]
RangeName = Annotated[str, matching(_NAME, "Write one from `gcloud compute networks subnets describe`.")]
ReservationName = Annotated[
    str, _linked(rf"projects/{_PROJECT}/reservations/", "reservations", rf"(/reservationBlocks/{_NAME})?")
]


#: The keys under which a stack names its project and region: the GCP provider's own, so that no second ones can differ.
PROJECT: Final = "gcp:project"
REGION: Final = "gcp:region"

_PROJECT_ID: Final = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", re.ASCII)
_PROJECT_ALLOWED: Final = "the id of a project: 6 to 30 lower-case letters, digits and hyphens"


def project_problem(project: str | None) -> Problem | None:
    """The problem of a stack's project; None for a valid id."""
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
        value=format_value(project),
        allowed=_PROJECT_ALLOWED,
        fix=f"Write the id of this project number from `gcloud projects describe {project}`."
        if number
        else "Write the id from `gcloud projects list`, not the name.",
    )


def region_problem(region: str | None) -> Problem | None:
    """The problem of a stack's region; None for a known region."""
    known = regions("gcp")
    return errors.region_problem(
        REGION,
        region,
        known,
        what="region",
        allowed=", ".join(sorted(known)),
        example="us-central1",
        meant=re.sub(r"-[a-z]$", "", region or ""),
    )


def is_zone_of(zone: str, region: str) -> bool:
    """Whether a zone is in a region; any letter is valid if the region's zones are unknown."""
    known = zones_of(region)
    return zone in known if known else zone[:-2] == region
