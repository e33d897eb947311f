"""The custom resource definition of FallbackPolicy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.fallback_policy.schema import policy_schema

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

GROUP = "holdfast.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "FallbackPolicy"
PLURAL = "fallbackpolicies"
DEFINITION = f"{PLURAL}.{GROUP}"


def definition_spec() -> Json:
    """Return the specification of the definition."""
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
                "schema": {"openAPIV3Schema": policy_schema()},
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
