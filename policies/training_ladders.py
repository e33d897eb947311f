"""Training namespaces of a stack, and the ladders that lie in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.policies.known_values import UNKNOWN, Unknown, at, text_at
from holdfast.policies.stack import once
from holdfast.scheduling.labels import LADDER, TRAINING, TRAINING_VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.findings import StackResource

#: A patch that labels a namespace made elsewhere makes it a training namespace all the same.
NAMESPACE_TYPES = frozenset({"kubernetes:core/v1:Namespace", "kubernetes:core/v1:NamespacePatch"})


@dataclass(frozen=True, kw_only=True)
class TrainingNamespace:
    """A namespace labelled as training; while not `proven`, only the update will know whether it is labelled so."""

    resource: StackResource
    name: str | Unknown
    proven: bool

    @property
    def title(self) -> str:
        """How a message names the namespace."""
        return (
            f"namespace {self.resource.logical_name!r} (its resource's name)"
            if self.name is UNKNOWN
            else f"namespace {self.name!r}"
        )


@dataclass(frozen=True, kw_only=True)
class LadderCandidates:
    """FallbackPolicies that may be a namespace's ladder."""

    certain: Sequence[StackResource]
    possible: Sequence[StackResource]
    misnamed: Sequence[StackResource]


@once
def training_namespaces(resources: Sequence[StackResource]) -> tuple[TrainingNamespace, ...]:
    """Return the stack's namespaces that are, or may turn out to be, labelled as training."""
    found: list[TrainingNamespace] = []
    for resource in (each for each in resources if each.type in NAMESPACE_TYPES):
        label = at(resource.props, "metadata", "labels", TRAINING)
        if label == TRAINING_VALUE or label is UNKNOWN:
            name = text_at(resource.props, "metadata", "name")
            found.append(
                TrainingNamespace(
                    resource=resource, name=UNKNOWN if name is None else name, proven=label is not UNKNOWN
                )
            )
    return tuple(found)


def is_fallback_policy(type_token: str) -> bool:
    """Whether the type is a FallbackPolicy of any API version."""
    return type_token.startswith("kubernetes:holdfast.dev/") and type_token.endswith(":FallbackPolicy")


@once
def fallback_policies(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    """Return the stack's FallbackPolicies."""
    return tuple(each for each in resources if is_fallback_policy(each.type))


def candidates(namespace: TrainingNamespace, resources: Sequence[StackResource]) -> LadderCandidates:
    """Sort the stack's FallbackPolicies by whether they are this namespace's ladder."""
    certain: list[StackResource] = []
    possible: list[StackResource] = []
    misnamed: list[StackResource] = []
    for resource in fallback_policies(resources):
        here = equal(text_at(resource.props, "metadata", "namespace") or "default", namespace.name)
        named = equal(text_at(resource.props, "metadata", "name"), LADDER)
        if here is True and named is True:
            certain.append(resource)
        elif here is True and named is False:
            misnamed.append(resource)
        elif here is not False and named is not False:
            possible.append(resource)
    return LadderCandidates(certain=certain, possible=possible, misnamed=misnamed)


def equal(left: str | Unknown | None, right: str | Unknown | None) -> bool | Unknown:
    """Compare two texts; a comparison with the unknown is unknown."""
    return UNKNOWN if left is UNKNOWN or right is UNKNOWN else left == right
