"""The admission policies as objects to apply, and others beside them that change pods after ours have run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.admission.pod_admission import binding_spec, policy_name, policy_spec
from holdfast.scheduling.labels import CAPACITY_TYPE, SPOT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.components.admission.rules import AdmissionRule
    from holdfast.scheduling.json import Json

API_VERSION = "admissionregistration.k8s.io/v1"

#: Pods with this annotation are changed by another policy after ours: given a spot selector, or merely touched.
REWRITE = "example.com/rewrite"
GIVEN_SPOT = "given-spot"
TOUCHED = "touched"


def admission_objects(rules: Iterable[AdmissionRule]) -> list[Json]:
    """Each rule's policy and binding."""
    return [
        manifest
        for rule in rules
        for manifest in policy_and_binding(policy_name(rule), policy_spec(rule), binding_spec(rule))
    ]


def rewriting_objects() -> list[Json]:
    """Policies by which pods change after ours have seen them; policies run in the order of their names."""
    selector = (
        '[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"' + CAPACITY_TYPE + f'": "{SPOT}"}}}}]'
    )
    label = '[JSONPatch{op: "add", path: "/metadata/labels", value: {"touched": "yes"}}]'
    return [
        *rewriting_policy("zz-gives-spot", GIVEN_SPOT, selector),
        *rewriting_policy("zz-touches", TOUCHED, label),
    ]


def rewriting_policy(name: str, value: str, patch: str) -> list[Json]:
    """A policy that patches every pod whose annotation has this value."""
    condition = f'object.metadata.?annotations[?"{REWRITE}"].orValue("") == "{value}"'
    everywhere: Json = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    spec: Json = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [everywhere]},
        "matchConditions": [{"name": "annotated", "expression": condition}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    return policy_and_binding(name, spec, {"policyName": name})


def policy_and_binding(name: str, policy: Json, binding: Json) -> list[Json]:
    """Both objects of one name."""
    return [
        {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in (("MutatingAdmissionPolicy", policy), ("MutatingAdmissionPolicyBinding", binding))
    ]
