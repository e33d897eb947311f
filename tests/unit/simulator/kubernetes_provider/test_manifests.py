"""YAML is read as Kubernetes reads it."""

import pytest

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.manifests import objects_in, resource_names


def test_empty_documents_are_no_objects() -> None:
    assert list(objects_in("---\n---\nkind: A\n---\n# nothing\n")) == [{"kind": "A"}], (
        "a comment became an object"
    )


def test_a_list_is_its_items() -> None:
    assert list(objects_in("kind: PodList\nitems: [{kind: Pod}, {kind: Pod}]")) == [{"kind": "Pod"}] * 2, (
        "no API server takes a list"
    )


def test_what_looks_like_a_date_is_text() -> None:
    found = next(objects_in("kind: A\nversion: 2024-01-02\n"))
    assert found["version"] == "2024-01-02", "JSON has no dates"


@pytest.mark.parametrize("text", ["a: [", "just words", "a: 1"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(RehearsalError, match="YAML"):
        list(objects_in(text))


def test_names_are_listed_by_kind() -> None:
    manifest = """
kind: Deployment
apiVersion: apps/v1
metadata: {name: b, namespace: n}
---
kind: Deployment
apiVersion: apps/v1
metadata: {name: a, namespace: n}
---
kind: Namespace
apiVersion: v1
metadata: {name: n}
"""
    assert resource_names(manifest) == {
        "Deployment.apps/apps/v1": ["n/a", "n/b"],
        "Namespace/v1": ["n"],
    }, "programs look objects of a release up by these keys"
