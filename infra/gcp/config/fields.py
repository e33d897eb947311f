"""Types of single GCP values: a machine type, a zone, a key, a network."""

import re
from typing import TYPE_CHECKING, Annotated, Final, cast

from pydantic import AfterValidator, BeforeValidator

from holdfast.infra.config.fields import refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

ZONE_ALLOWED: Final = "a zone, such as us-central1-a"
MACHINE_ALLOWED: Final = "one machine type of Compute Engine"
KEY_ALLOWED: Final = "the name of a key: projects/…/locations/…/keyRings/…/cryptoKeys/…"
NETWORK_ALLOWED: Final = "the name of a network of the project, or projects/…/global/networks/… of another's"
SUBNETWORK_ALLOWED: Final = (
    "the name of a subnetwork of the project, or projects/…/regions/…/subnetworks/… of another's"
)
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
_LINK: Final = re.compile(r"https://[a-z.]+/compute/[a-z0-9]+/")


def _machine_type(value: object) -> object:
    if not isinstance(value, list | tuple):
        return value
    types = cast("Sequence[object]", value)
    if len(types) == 1 and isinstance(types[0], str):
        raise refusal(f'Write "{types[0]}", without the brackets.')
    raise refusal(
        "Write one of them: a node pool of GKE has one machine type. Where it is often sold out, list more zones, "
        "or add a pool for each type and a tier for each pool."
    )


def _zone(text: str) -> str:
    if not _ZONE.fullmatch(text):
        raise refusal("Write a region, a hyphen and the letter of one of its zones, such as us-central1-a.")
    return text


def _key(text: str) -> str:
    without_version = re.sub(r"/cryptoKeyVersions/[0-9]+$", "", text)
    if without_version != text and _KEY.fullmatch(without_version):
        raise refusal(f'Write the key without its version, which changes: "{without_version}".')
    if not _KEY.fullmatch(text):
        raise refusal(
            "Write what `gcloud kms keys list --keyring RING --location REGION` prints as its name."
        )
    return text


def _network(text: str) -> str:
    return _linked(text, _NETWORK, "gcloud compute networks list --format='value(name)'")


def _subnetwork(text: str) -> str:
    return _linked(text, _SUBNETWORK, "gcloud compute networks subnets list --format='value(name)'")


def _linked(text: str, shape: re.Pattern[str], command: str) -> str:
    path = _LINK.sub("", text)
    if path != text and shape.fullmatch(path):
        raise refusal(f'Write "{path}".')
    if not shape.fullmatch(text):
        raise refusal(f"Write one of those which `{command}` prints.")
    return text


def _range(text: str) -> str:
    if not re.fullmatch(_NAME, text, re.ASCII):
        raise refusal("Write one of those which `gcloud compute networks subnets describe` prints.")
    return text


MachineType = Annotated[str, BeforeValidator(_machine_type)]
Zone = Annotated[str, AfterValidator(_zone)]
KeyName = Annotated[str, AfterValidator(_key)]
NetworkName = Annotated[str, AfterValidator(_network)]
SubnetworkName = Annotated[str, AfterValidator(_subnetwork)]
RangeName = Annotated[str, AfterValidator(_range)]
