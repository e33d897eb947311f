"""Selects the resources after which a run is killed. Pure."""

import random
from collections.abc import Iterable, Sequence

from pulumi_holdfast.rehearsal.engine.checkpoint import RecordedResource, type_in


def drawn(urns: Sequence[str], size: int, seed: int) -> tuple[str, ...]:
    """Return the pivotal resources of a stack, and `size` others drawn with the seed."""
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
    """Return the URNs of the resources that a provider created, in order of creation.

    Components and provider instances exist only in the engine. Resources that were only read are not created by
    the stack.
    """
    return tuple(
        one.urn
        for one in resources
        if one.id and not one.external and not one.type.startswith(_MADE_BY_THE_ENGINE)
    )


def pivotal(urns: Sequence[str]) -> tuple[str, ...]:
    """Return the URNs of the pivotal resources: spot role, cluster, Karpenter, pools, and the grants of GCP.

    A run killed after one of these leaves the most behind: an account-wide role, the cluster, the controller and owner of
    machines, and access to checkpoints.
    """
    return tuple(urn for urn in urns if type_in(urn).endswith(_PIVOTAL) or _is_karpenter(urn))


def _is_karpenter(urn: str) -> bool:
    return type_in(urn).endswith("Release") and "karpenter" in urn.lower() and not urn.endswith("-crds")


def sample(urns: Sequence[str], size: int, seed: int) -> tuple[str, ...]:
    """Return at most `size` of the URNs in their order; the same seed selects the same ones."""
    chosen = frozenset(random.Random(seed).sample(urns, min(size, len(urns))))
    return tuple(urn for urn in urns if urn in chosen)
