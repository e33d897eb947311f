"""The component that teaches a cluster what a FallbackPolicy is."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.apiextensions.v1 import CustomResourceDefinition

from holdfast.components.fallback_policy.definition import DEFINITION, definition_spec

if TYPE_CHECKING:
    from pulumi_kubernetes.apiextensions.v1 import CustomResourceDefinitionSpecArgsDict


class FallbackPolicyDefinition(ComponentResource):
    """The kind FallbackPolicy on one cluster.

    Creates the custom resource definition `fallbackpolicies.holdfast.dev`. It goes when the stack is destroyed: what it
    holds is configuration that every `up` writes anew, no training progress. Namespaces depend on it, so their ladders
    are gone before it is.
    """

    def __init__(self, name: str, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:FallbackPolicyDefinition", name, None, opts)
        CustomResourceDefinition(
            f"{name}-crd",
            metadata={"name": DEFINITION},
            spec=cast("CustomResourceDefinitionSpecArgsDict", definition_spec()),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
