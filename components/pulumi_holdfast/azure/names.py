"""Names that Azure gives to pools, zones and checkpoint containers. No SDK needed."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

#: Length of a Linux node pool's name: lower-case letters and digits, beginning with a letter.
LONGEST_NAME: Final = 12

_DIGEST: Final = 4

#: Of the 24 characters of a storage account's name, 8 are generated.
_LONGEST_PREFIX: Final = 16


def agent_pool_name(pool: str) -> str:
    """Return the node pool name of a pool: its name without hyphens (`a100-spot` → `a100spot`).

    A name that is still too long is cut and ends in a digest of the whole name, so that pools with a common
    prefix stay distinct. Names that differ only in hyphens give the same result.
    """
    letters = re.sub(r"[^a-z0-9]", "", pool)
    if not letters[:1].isalpha():
        letters = f"p{letters}"
    if len(letters) <= LONGEST_NAME:
        return letters
    return letters[: LONGEST_NAME - _DIGEST] + sha256(pool.encode()).hexdigest()[:_DIGEST]


def storage_account_prefix(name: str) -> str:
    """Return what the generated name of a storage account begins with: a name of letters and digits, cut with a digest."""
    letters = re.sub(r"[^a-z0-9]", "", name.lower())
    if len(letters) <= _LONGEST_PREFIX:
        return letters
    return letters[: _LONGEST_PREFIX - _DIGEST] + sha256(name.encode()).hexdigest()[:_DIGEST]


def zone_label(location: str, zone: str) -> str:
    """Return the zone label's value for a zone (`1`) of a location (`westeurope`): `westeurope-1`."""
    return f"{location}-{zone}"


#: The fewest and the most characters of a container's name.
LENGTHS: Final = (3, 63)

_RUNS: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def is_container_name(namespace: str) -> bool:
    """Return whether a namespace's name is valid as a container's name.

    Kubernetes allows two kinds of names that Blob Storage does not: one or two characters, and `--`.
    """
    fewest, most = LENGTHS
    return fewest <= len(namespace) <= most and _RUNS.fullmatch(namespace) is not None
