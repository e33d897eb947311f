"""Types of single GCP values (machine types, zones, keys, networks), and the rules of projects and regions."""

import re
from difflib import get_close_matches
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator

from holdfast.infra.config.errors import format_value
from holdfast.infra.config.fields import error_with_fix, not_a_list
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.machines import regions, zones_of

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

_ZONE: Final = re.compile(r"[a-z]+-[a-z]+[0-9]+-[a-z]", re.ASCII)
_NAME: Final = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
_PROJECT: Final = r"[a-z][-a-z0-9.:]{4,61}[a-z0-9]"
_KEY_PART: Final = r"[A-Za-z0-9_-]{1,63}"
_KEY: Final = re.compile(
    rf"projects/{_PROJECT}/locations/[a-z0-9-]+/keyRings/{_KEY_PART}/cryptoKeys/{_KEY_PART}", re.ASCII
)
_NETWORK: Final = re.compile(rf"(projects/{_PROJECT}/global/networks/)?{_NAME}", re.ASCII)
_SUBNETWORK: Final = re.compile(rf"(projects/{_PROJECT}/regions/[a-z0-9-]+/subnetworks/)?{_NAME}", re.ASCII)
_RESERVATION: Final = re.compile(
    rf"(projects/{_PROJECT}/reservations/)?{_NAME}(/reservationBlocks/{_NAME})?", re.ASCII
)
_LINK: Final = re.compile(r"https://[a-z.]+/compute/[a-z0-9]+/")


def _zone(text: str) -> str:
    if not _ZONE.fullmatch(text):
        raise error_with_fix(
            "Write a region, a hyphen and the letter of one of its zones, such as us-central1-a."
        )
    return text


def _key(text: str) -> str:
    without_version = re.sub(r"/cryptoKeyVersions/[0-9]+$", "", text)
    if without_version != text and _KEY.fullmatch(without_version):
        raise error_with_fix(f'Write the key without its version, which rotates: "{without_version}".')
    if not _KEY.fullmatch(text):
        raise error_with_fix("Write the name from `gcloud kms keys list --keyring RING --location REGION`.")
    return text


def _network(text: str) -> str:
    return _linked(text, _NETWORK, "gcloud compute networks list --format='value(name)'")


def _cluster_name(text: str) -> str:
    if not re.fullmatch(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", text, re.ASCII):
        raise error_with_fix("Write one that `gcloud container clusters list --format='value(name)'` prints.")
    return text


def _subnetwork(text: str) -> str:
    return _linked(text, _SUBNETWORK, "gcloud compute networks subnets list --format='value(name)'")


def _reservation(text: str) -> str:
    return _linked(text, _RESERVATION, "gcloud compute reservations list --format='value(name)'")


def _linked(text: str, shape: re.Pattern[str], command: str) -> str:
    path = _LINK.sub("", text)
    if path != text and shape.fullmatch(path):
        raise error_with_fix(f'Write "{path}".')
    if not shape.fullmatch(text):
        raise error_with_fix(f"Write one that `{command}` prints.")
    return text


def _range(text: str) -> str:
    if not re.fullmatch(_NAME, text, re.ASCII):
        raise error_with_fix("Write one from `gcloud compute networks subnets describe`.")
    return text


MachineType = Annotated[
    str,
    BeforeValidator(
        not_a_list(
            "Write one of them: a GKE node pool has one machine type. If it is often out of capacity, list more zones, "
            "or add a pool for each type and a tier for each pool."
        )
    ),
]
Zone = Annotated[str, AfterValidator(_zone)]
KeyName = Annotated[str, AfterValidator(_key)]
GkeClusterName = Annotated[str, AfterValidator(_cluster_name)]
NetworkName = Annotated[str, AfterValidator(_network)]
SubnetworkName = Annotated[str, AfterValidator(_subnetwork)]
RangeName = Annotated[str, AfterValidator(_range)]
ReservationName = Annotated[str, AfterValidator(_reservation)]


#: The keys under which a stack names its project and region: the GCP provider's own, so that no second ones can differ.
PROJECT: Final = "gcp:project"
REGION: Final = "gcp:region"

_PROJECT_ID: Final = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", re.ASCII)
_PROJECT_ALLOWED: Final = "the id of a project: 6 to 30 lower-case letters, digits and hyphens"
_EXAMPLE: Final = f"Write, for example, `{REGION}: us-central1` beside holdfast:platform."


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
    if region is None:
        return Problem(
            field=REGION, value="nothing", allowed="the region of the stack", fix=f"Add it. {_EXAMPLE}"
        )
    if region in known:
        return None
    close = get_close_matches(re.sub(r"-[a-z]$", "", region), known, n=1)
    return Problem(
        field=REGION,
        value=format_value(region),
        allowed=", ".join(sorted(known)),
        fix=f'Write "{close[0]}".' if close else _EXAMPLE,
    )


def is_zone_of(zone: str, region: str) -> bool:
    """Whether a zone is in a region; any letter is valid if the region's zones are unknown."""
    known = zones_of(region)
    return zone in known if known else zone[:-2] == region
