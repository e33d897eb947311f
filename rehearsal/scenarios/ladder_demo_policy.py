"""A ladder that is walked in a minute and not in a day, and the namespace for it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import LADDER
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.summary import mapping, sequence

NAMESPACE: Final = "training-demo"
EVICTIONS: Final = 3
#: How close to each other losses are one outage, in seconds: a reclaim here takes a fraction of one.
OUTAGE_SECONDS: Final = 3
_POLICY: Final = "holdfast.dev/v1alpha1"
# A machine of the simulated cloud is there within Karpenter's own 10 s; a busy computer needs longer.
_ENOUGH: Final = "2m"
_NOT_LONG: Final = "10s"
_RETURN_AFTER: Final = "15s"
_TIERS: Final = 3


@dataclass(frozen=True, kw_only=True)
class ShortLadder:
    """A ladder of two tiers on spot and one on demand, of the pools of the namespace `model`."""

    model: str
    tiers: Sequence[Json]

    @property
    def pools(self) -> tuple[str, ...]:
        """Its pools, best first."""
        return tuple(str(tier["pool"]) for tier in self.tiers)

    def policy(self) -> Json:
        """Return the ladder as the jobs of NAMESPACE follow it."""
        first, second, last = self.tiers
        return {
            "apiVersion": _POLICY,
            "kind": "FallbackPolicy",
            "metadata": {"name": LADDER, "namespace": NAMESPACE},
            "spec": {
                "tiers": [
                    {**first, "maxFailures": EVICTIONS, "procurementTimeout": _ENOUGH},
                    {**second, "maxFailures": EVICTIONS, "procurementTimeout": _NOT_LONG},
                    last,
                ],
                "outageWindow": f"{OUTAGE_SECONDS}s",
                "returnAfter": _RETURN_AFTER,
                "holdTimeout": _ENOUGH,
            },
        }


def short_ladder(policies: Sequence[Json]) -> ShortLadder:
    """Make one of the first ladder that is long enough. Raises RehearsalError where none is."""
    for policy in sorted(policies, key=_namespace_of):
        tiers = [mapping(tier) for tier in sequence(mapping(policy.get("spec")).get("tiers"))]
        if len(tiers) >= _TIERS and _namespace_of(policy) != NAMESPACE:
            return ShortLadder(model=_namespace_of(policy), tiers=(tiers[0], tiers[1], tiers[-1]))
    raise RehearsalError(
        f"no training namespace has a ladder of {_TIERS} tiers: add one under `namespaces` in the stack file, "
        "and bring the stack up again"
    )


def _namespace_of(policy: Json) -> str:
    return str(mapping(policy.get("metadata")).get("namespace"))
