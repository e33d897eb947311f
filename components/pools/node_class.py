"""Node classes: the part of a Karpenter pool that is each cloud's own. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from scheduling.json import Json, JsonValue


@dataclass(frozen=True, kw_only=True)
class NodeClass:
    """A kind of node class and what it says; its name is the pool's."""

    group: str
    version: str
    kind: str
    spec: Json = field(default_factory=dict[str, JsonValue])

    @property
    def api_version(self) -> str:
        """Group and version, as objects name them."""
        return f"{self.group}/{self.version}"


#: Simulated machines; they join as soon as they are bought.
KWOK: Final = NodeClass(group="karpenter.kwok.sh", version="v1alpha1", kind="KWOKNodeClass")
