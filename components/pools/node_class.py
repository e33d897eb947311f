"""Node classes: the part of a Karpenter pool that is each cloud's own. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input

#: JSON in which a text that is not known yet may stand anywhere.
SpecValue: TypeAlias = "bool | int | Input[str] | Sequence[SpecValue] | Mapping[str, SpecValue]"
Spec: TypeAlias = "Mapping[str, SpecValue]"


@dataclass(frozen=True, kw_only=True)
class NodeClass:
    """A kind of node class and what it says; its name is the pool's."""

    group: str
    version: str
    kind: str
    spec: Spec = field(default_factory=dict[str, "SpecValue"])

    @property
    def api_version(self) -> str:
        """Group and version, as objects name them."""
        return f"{self.group}/{self.version}"


#: Simulated machines; they join as soon as they are bought.
KWOK: Final = NodeClass(group="karpenter.kwok.sh", version="v1alpha1", kind="KWOKNodeClass")
