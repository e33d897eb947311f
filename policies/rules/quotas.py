"""The rule that training namespaces set quotas: without one, a typing error in a gang's size buys every GPU there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from policies.findings import Finding
from policies.known_values import UNKNOWN, text_at
from policies.training_ladders import training_namespaces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.findings import StackResource
    from policies.rule import Settings

_QUOTAS: Final = ("kubernetes:core/v1:ResourceQuota", "kubernetes:core/v1:ResourceQuotaPatch")


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the training namespaces without a ResourceQuota."""
    with_quota = {
        text_at(each.props, "metadata", "namespace") or "default"
        for each in resources
        if each.type in _QUOTAS
    }
    if UNKNOWN in with_quota:
        return ()
    return tuple(
        Finding(
            urn=namespace.resource.urn,
            message=f"{namespace.title} has no ResourceQuota: one job may take all that the pools have. Add one with "
            "`requests.nvidia.com/gpu`, or `pods`.",
        )
        for namespace in training_namespaces(resources)
        if namespace.proven and namespace.name is not UNKNOWN and namespace.name not in with_quota
    )
