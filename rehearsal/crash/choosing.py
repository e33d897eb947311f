"""Chooses the resources after which a run is killed."""

import random
from collections.abc import Iterable, Sequence

from rehearsal.engine.checkpoint import Recorded

_MADE_BY_THE_ENGINE = "pulumi:"


def every(resources: Iterable[Recorded]) -> tuple[str, ...]:
    """Return the URNs of the resources that a provider made, in the order in which they were made.

    Components and provider instances are the engine's own: nothing outside it is made for them. What was only
    read was made by somebody else.
    """
    return tuple(
        one.urn
        for one in resources
        if one.id and not one.external and not one.type.startswith(_MADE_BY_THE_ENGINE)
    )


def sample(urns: Sequence[str], size: int, seed: int) -> tuple[str, ...]:
    """Return some of the URNs, at most `size`, in their order; the same for the same seed."""
    chosen = frozenset(random.Random(seed).sample(urns, min(size, len(urns))))  # noqa: S311 - a test's choice
    return tuple(urn for urn in urns if urn in chosen)
