"""What AKS calls a pool and a zone. Pure."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

#: A node pool's name on Linux: small letters and digits, a letter first.
LONGEST_NAME: Final = 12

_DIGEST: Final = 4


def agent_pool_name(pool: str) -> str:
    """The name of a pool's node pool: the pool's own without its hyphens (`a100-spot` → `a100spot`).

    One that is too long even so ends in a digest of the whole, so that two of a common beginning stay two. Names that
    differ in their hyphens alone come out alike.
    """
    letters = re.sub(r"[^a-z0-9]", "", pool)
    if not letters[:1].isalpha():
        letters = f"p{letters}"
    if len(letters) <= LONGEST_NAME:
        return letters
    return letters[: LONGEST_NAME - _DIGEST] + sha256(pool.encode()).hexdigest()[:_DIGEST]


def zone_label(location: str, zone: str) -> str:
    """The value of the zone label on the nodes of a zone (`1`) of a location (`westeurope`): `westeurope-1`."""
    return f"{location}-{zone}"


#: Characters of a container's name, from the fewest to the most.
LENGTHS: Final = (3, 63)

_RUNS: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def is_container_name(namespace: str) -> bool:
    """Whether a namespace's name can be its container's too.

    Kubernetes takes two names that Blob Storage does not: those of one or two characters, and those with `--`.
    """
    fewest, most = LENGTHS
    return fewest <= len(namespace) <= most and _RUNS.fullmatch(namespace) is not None
