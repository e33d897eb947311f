"""CEL as text; what it does is tried on a real API server under tests/cluster."""

from __future__ import annotations

from holdfast.components.admission.expressions import (
    has_limit,
    label_patch,
    selects_by_label,
    text,
    toleration_patch,
)
from holdfast.components.admission.rules import NodeSelection
from holdfast.scheduling.taints import Taint


def test_quotes_in_a_value_cannot_end_its_literal() -> None:
    assert text('a" || true || "') == r'"a\" || true || \""', (
        "a value is data and never becomes an expression"
    )


def test_a_selection_allows_exactly_its_values() -> None:
    expression = selects_by_label(NodeSelection(key="example.com/market", values=("spot", "preemptible")))
    assert expression == (
        'object.spec.?nodeSelector[?"example.com/market"].orValue("") in ["spot", "preemptible"]'
    ), "a pod without selector or key must read as one that selects nothing"


def test_a_resource_is_looked_for_in_all_containers() -> None:
    assert "object.spec.?initContainers" in has_limit("nvidia.com/gpu"), (
        "an init container needs the machine as much as a container does"
    )


def test_what_is_added_is_the_taints_own_toleration() -> None:
    patch = toleration_patch(Taint(key="cloud.google.com/gke-spot", value="true"))
    assert (
        'Object.spec.tolerations{key: "cloud.google.com/gke-spot", operator: "Equal", '
        'value: "true", effect: "NoSchedule"}'
    ) in patch, "another cloud's taint is only another argument"


def test_a_label_is_for_the_pods_of_one_service_account() -> None:
    patch = label_patch("azure.workload.identity/use", "true", service_account="trainer")
    assert patch.startswith('object.spec.?serviceAccountName.orValue("") != "trainer" || '), (
        "a pod that reads no checkpoints is given no identity"
    )
    assert 'jsonpatch.escapeKey("azure.workload.identity/use")' in patch, "a slash in a key would be a path"
