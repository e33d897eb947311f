"""Where operators run: on the system nodes, which no interruption takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.scheduling.labels import SYSTEM, SYSTEM_VALUE, ZONE
from holdfast.scheduling.taints import SYSTEM as SYSTEM_TAINT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.scheduling.json import Json

SYSTEM_NODE_SELECTOR: Final[Mapping[str, str]] = {SYSTEM: SYSTEM_VALUE}

# By key alone: whatever value a cloud gives to this taint of its system nodes. GKE's have none: its own services would
# not tolerate it.
SYSTEM_TOLERATIONS: Final[Sequence[Json]] = ({"key": SYSTEM_TAINT.key, "operator": "Exists"},)


def apart(labels: Mapping[str, str]) -> Json:
    """The affinity of pods with these labels which keeps them in different zones, and so on different nodes.

    A preference and no more: with a rule, two replicas on two nodes could never be rolled, because the third pod,
    which comes before one of them goes, would have no node left.
    """
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": {"matchLabels": labels}},
                }
            ]
        }
    }


def image(mirror: str | None, repository: str) -> str:
    """An image's repository, without a tag, in upstream's registry or in a mirror of it.

    A mirror (`registry.example.com/holdfast`) takes the place of the registry's host: what lies at
    `quay.io/kuberay/operator` upstream lies at `registry.example.com/holdfast/kuberay/operator` there.
    """
    if mirror is None:
        return repository
    _, _, path = repository.partition("/")
    return f"{mirror.rstrip('/')}/{path}"
