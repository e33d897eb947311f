"""Tolerations, as the scheduler reads them."""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.scheduling.taints import Taint


@dataclass(frozen=True, kw_only=True)
class Toleration:
    """What a pod puts up with. An empty `key` is any key, an empty `effect` any effect; `value` is None for `Exists`."""

    key: str = ""
    value: str | None = None
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether the scheduler lets a pod with it onto a node with the taint."""
        return (
            self.key in {"", taint.key}
            and self.effect in {"", taint.effect}
            and self.value in {None, taint.value}
        )

    @classmethod
    def of(cls, taint: Taint) -> "Toleration":
        """The one toleration that matches exactly this taint."""
        return cls(key=taint.key, value=taint.value, effect=taint.effect)


#: Only these keep a pod away; `PreferNoSchedule` is a wish.
REPELLING = frozenset({"NoSchedule", "NoExecute"})


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> tuple[Taint, ...]:
    """The taints that keep away a pod with these tolerations."""
    known = tuple(tolerations)
    return tuple(
        taint
        for taint in taints
        if taint.effect in REPELLING and not any(each.tolerates(taint) for each in known)
    )
