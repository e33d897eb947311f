"""The CustomResourceDefinition of FallbackPolicy."""

from __future__ import annotations

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.ladder.fallback_policy import POLICY_SCHEMA
from pulumi_holdfast.ladder.json import Json

GROUP = "holdfast.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "FallbackPolicy"
PLURAL = "fallbackpolicies"
DEFINITION = f"{PLURAL}.{GROUP}"


def definition_spec() -> Json:
    """Return the specification of the CustomResourceDefinition."""
    return {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {
            "kind": KIND,
            "listKind": f"{KIND}List",
            "plural": PLURAL,
            "singular": KIND.lower(),
            "shortNames": ["fbp"],
        },
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": POLICY_SCHEMA},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "First", "type": "string", "jsonPath": ".spec.tiers[0].pool"},
                    {"name": "Last", "type": "string", "jsonPath": ".spec.tiers[-1:].pool"},
                    {"name": "Failures", "type": "string", "jsonPath": ".spec.failures", "priority": 1},
                    {"name": "Jobs", "type": "integer", "jsonPath": ".status.jobs"},
                    {"name": "Status", "type": "string", "jsonPath": ".status.summary"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
        ],
    }


class FallbackPolicyDefinition(ComponentResource):
    """The kind FallbackPolicy on a cluster (`holdfast:index:FallbackPolicyDefinition`).

    Creates the CustomResourceDefinition `fallbackpolicies.holdfast.dev`. It is deleted with the stack,
    because its objects are configuration that every `up` writes again. Namespaces depend on it, so their
    ladders are deleted first.
    """

    def __init__(self, name: str, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:FallbackPolicyDefinition", name, None, opts)
        KubernetesObject(
            f"{name}-crd",
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            {"metadata": {"name": DEFINITION}, "spec": definition_spec()},
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
