"""What a gang asks of the nodes it runs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.scheduling.json import Json


@dataclass(frozen=True, kw_only=True)
class PodShape:
    """So many pods alike: `requests` are a pod's effective ones, by resource name, as Kubernetes quantities.

    Effective: the sum over its containers, or an init container's where that is more, with the overhead.
    `tolerations` are those of the job's template; selectors are not kept, the pool's label replaces them.
    """

    count: int
    requests: Mapping[str, str]
    tolerations: tuple[Json, ...] = ()
