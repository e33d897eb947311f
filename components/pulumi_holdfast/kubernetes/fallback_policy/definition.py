"""The CustomResourceDefinition of FallbackPolicy."""

from __future__ import annotations

from pulumi import ResourceOptions

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


def fallback_policy_definition(name: str, opts: ResourceOptions | None = None) -> KubernetesObject:
    """Create the CustomResourceDefinition `fallbackpolicies.holdfast.dev`.

    It is deleted with the stack, because its objects are configuration that every `up` writes again. Namespaces depend on it,
    so their ladders are deleted first.
    """
    fields = {"metadata": {"name": DEFINITION}, "spec": definition_spec()}
    return KubernetesObject(name, "apiextensions.k8s.io/v1", "CustomResourceDefinition", fields, opts=opts)
