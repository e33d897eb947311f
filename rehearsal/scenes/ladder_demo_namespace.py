"""A training namespace for the length of a scene, with a ladder that is walked in a minute and not in a day."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rehearsal.errors import RehearsalError
from rehearsal.kube.client import KubeClient
from rehearsal.kube.summary import mapping, sequence
from rehearsal.scenes.placement import name_of
from rehearsal.scenes.platform import FIELD_MANAGER
from rehearsal.scenes.waiting import SECONDS
from scheduling.json import Json
from scheduling.labels import LADDER

NAMESPACE: Final = "training-demo"
EVICTIONS: Final = 3
#: How close to each other losses are one outage, in seconds: a reclaim here takes a fraction of one.
OUTAGE_SECONDS: Final = 3
_POLICY: Final = "holdfast.dev/v1alpha1"
_RBAC: Final = "rbac.authorization.k8s.io/v1"
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


@contextmanager
def training_namespace(client: KubeClient, ladder: ShortLadder) -> Generator[str]:
    """NAMESPACE for the length of the block: labelled and bound as the ladder's model. One that was left goes first."""
    _remove(client)
    try:
        for each in (*_like(client, ladder.model), ladder.policy()):
            client.apply(each, field_manager=FIELD_MANAGER, force=True)
        yield NAMESPACE
    finally:
        _remove(client)


def _like(client: KubeClient, model: str) -> list[Json]:
    """Return the namespace with what makes the model one that jobs run and move in."""
    found = mapping(client.get("v1", "Namespace", model))
    labels = mapping(mapping(found.get("metadata")).get("labels"))
    kept = {key: value for key, value in labels.items() if not key.startswith("kubernetes.io/")}
    namespace: Json = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": kept},
    }
    bindings = client.list(_RBAC, "RoleBinding", namespace=model)
    return [namespace, *(_bound_here(each) for each in bindings)]


def _bound_here(binding: Json) -> Json:
    return {
        "apiVersion": _RBAC,
        "kind": "RoleBinding",
        "metadata": {"name": name_of(binding), "namespace": NAMESPACE},
        "roleRef": binding["roleRef"],
        "subjects": binding.get("subjects"),
    }


def _remove(client: KubeClient) -> None:
    if client.delete("v1", "Namespace", NAMESPACE):
        client.wait_for(
            "v1",
            "Namespace",
            NAMESPACE,
            timeout_seconds=SECONDS,
            condition=lambda found: found is None,
            what=f"namespace {NAMESPACE} is gone",
        )


def _namespace_of(policy: Json) -> str:
    return str(mapping(policy.get("metadata")).get("namespace"))
