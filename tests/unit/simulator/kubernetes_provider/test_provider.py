"""The functions a program calls are answered, or refused with what to use instead."""

import pytest

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.provider import invoke, refusal


def test_yaml_is_decoded() -> None:
    text = "kind: A\nmetadata: {name: a}\n---\nkind: B\nmetadata: {name: b, namespace: mine}\n"
    found = invoke("kubernetes:yaml:decode", {"text": text, "defaultNamespace": "team"})
    assert found == {
        "result": [
            {"kind": "A", "metadata": {"name": "a", "namespace": "team"}},
            {"kind": "B", "metadata": {"name": "b", "namespace": "mine"}},
        ]
    }, "a ConfigGroup registers other objects than its YAML has"


@pytest.mark.parametrize("token", ["kubernetes:helm:template", "kubernetes:kustomize:directory"])
def test_another_function_is_refused_with_what_to_use_instead(token: str) -> None:
    with pytest.raises(RehearsalError, match=r"not rehearsed; .+ as a "):
        invoke(token, {})


def test_a_remote_component_is_refused_with_what_to_use_instead() -> None:
    told = str(refusal("component", "kubernetes:helm.sh/v4:Chart"))
    assert "helm.v3.Release" in told, "the reader is left without a way on"
