"""Selects the resources after which a run is killed. Pure."""

import random
from collections.abc import Iterable, Sequence

from holdfast.simulator.pulumi.checkpoint import RecordedResource, type_in


def drawn(urns: Sequence[str], size: int, seed: int) -> tuple[str, ...]:
    """Return those of a stack's resources that it turns on, and so many others, drawn with the seed."""
    always = frozenset(pivotal(urns))
    others = sample([urn for urn in urns if urn not in always], size, seed)
    return tuple(urn for urn in urns if urn in always or urn in others)


_MADE_BY_THE_ENGINE = "pulumi:"


_PIVOTAL = (
    ":ServiceLinkedRole",
    ":Cluster",
    ":ManagedCluster",
    ":NodePool",
    ":AgentPool",
    ":ManagedFolderIamMember",
)


def every(resources: Iterable[RecordedResource]) -> tuple[str, ...]:
    """Return the URNs of the resources that a provider made, in the order in which they were made.

    Components and provider instances are the engine's own: nothing outside it is made for them. What was only
    read was made by somebody else.
    """
    return tuple(
        one.urn
        for one in resources
        if one.id and not one.external and not one.type.startswith(_MADE_BY_THE_ENGINE)
    )


def pivotal(urns: Sequence[str]) -> tuple[str, ...]:
    """Return the URNs that a stack turns on: its spot role, its cluster, its Karpenter, its pools, and GCP's grants.

    A run killed after one of these leaves the most behind: an account-wide role, what everything else is inside,
    what ends machines, what owns them, and rights to checkpoints of pods that any cluster of the project can have.
    """
    return tuple(urn for urn in urns if type_in(urn).endswith(_PIVOTAL) or _is_karpenter(urn))


def _is_karpenter(urn: str) -> bool:
    return type_in(urn).endswith("Release") and "karpenter" in urn.lower() and not urn.endswith("-crds")


def sample(urns: Sequence[str], size: int, seed: int) -> tuple[str, ...]:
    """Return some of the URNs, at most `size`, in their order; the same for the same seed."""
    chosen = frozenset(random.Random(seed).sample(urns, min(size, len(urns))))
    return tuple(urn for urn in urns if urn in chosen)
