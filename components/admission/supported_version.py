"""Which clusters can run the admission policies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.scheduling.taints import Taint

#: The first Kubernetes version that serves MutatingAdmissionPolicy as admissionregistration.k8s.io/v1.
OLDEST = (1, 36)

ALLOWED = "1.36 or later, the first to serve MutatingAdmissionPolicy v1, which gives training pods their tolerations"


def version_problem(field: str, version: str, taints: Iterable[Taint]) -> Problem | None:
    """Return why a cluster cannot run the admission policies, `None` when it can.

    `field` is the full path of the configuration field that holds the version (`1.36` or `1.36.3`); `taints` are those
    that pods have to tolerate by hand on an older cluster.
    """
    match = re.fullmatch(r"v?(\d+)\.(\d+)(?:[.+-].*)?", version, re.ASCII)
    if match is None:
        return Problem(
            field=field, value=f'"{version}"', allowed=ALLOWED, fix='Write a version such as "1.36".'
        )
    if (int(match[1]), int(match[2])) >= OLDEST:
        return None
    return Problem(
        field=field,
        value=f'"{version}"',
        allowed=ALLOWED,
        fix='Write "1.36"; or, to stay on the older version, leave out the training namespaces and add to each job\'s '
        f"pod template the tolerations it needs: {by_hand(taints)}.",
    )


def by_hand(taints: Iterable[Taint]) -> str:
    """Return tolerations as their author would write them into a pod template."""
    return ", ".join(
        f'{{key: {taint.key}, operator: Equal, value: "{taint.value}", effect: {taint.effect}}}'
        for taint in taints
    )
