"""Which names Blob Storage takes for the container of a training namespace. Pure."""

from __future__ import annotations

import re
from typing import Final

#: Characters of a container's name, from the fewest to the most.
LENGTHS: Final = (3, 63)

_RUNS: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def is_container_name(namespace: str) -> bool:
    """Whether a namespace's name can be its container's too.

    Kubernetes takes two names that Blob Storage does not: those of one or two characters, and those with `--`.
    """
    fewest, most = LENGTHS
    return fewest <= len(namespace) <= most and _RUNS.fullmatch(namespace) is not None
