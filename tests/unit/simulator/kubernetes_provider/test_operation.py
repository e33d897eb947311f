"""Type tokens, annotations and settings are read like the real provider reads them."""

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.operation import (
    ObjectKind,
    ProviderSettings,
    is_patch,
    kind_of,
    propagation,
    timeout_seconds,
    unsupported_settings,
)


def test_token_maps_to_its_kind() -> None:
    for token, api_version, kind in (
        ("kubernetes:core/v1:ConfigMap", "v1", "ConfigMap"),
        ("kubernetes:apps/v1:Deployment", "apps/v1", "Deployment"),
        ("kubernetes:karpenter.sh/v1:NodePool", "karpenter.sh/v1", "NodePool"),
    ):
        assert kind_of(token) == ObjectKind(api_version=api_version, kind=kind), f"{token} has another kind"
    for invalid in ("kubernetes:v1:Pod", "aws:s3/bucket:Bucket", "kubernetes:helm:"):
        with pytest.raises(RehearsalError, match=invalid):
            kind_of(invalid)
    assert not is_patch("kubernetes:x.io/v1:SourcePatch", "SourcePatch"), "its object must be deleted"
    assert is_patch("kubernetes:core/v1:ConfigMapPatch", "ConfigMap"), "a deletion keeps the object"


def annotated(name: str, value: str) -> Json:
    return {"metadata": {"annotations": {f"pulumi.com/{name}": value}}}


def test_timeout_and_propagation_are_read_from_annotations_and_have_defaults() -> None:
    for custom, value, seconds in ((30, "20", 30), (0, "20", 20), (0, "soon", 600), (0, "", 600)):
        found = timeout_seconds(annotated("timeoutSeconds", value), custom)
        assert found == seconds, "a custom timeout precedes the annotation and the default"
    for value, policy in (("orphan", "Orphan"), ("Background", "Background"), ("", "Foreground")):
        found = propagation(annotated("deletionPropagationPolicy", value))
        assert found == policy, "pods are deleted first unless annotated"


def test_settings_have_the_defaults_of_the_plugin_and_unsupported_ones_a_fix() -> None:
    for value in (True, "true"):
        assert ProviderSettings.of({"upsertExistingObjects": value}).upserts, f"{value!r} is true"
    assert not ProviderSettings.of({"upsertExistingObjects": "false"}).upserts, "the text false is not true"
    assert ProviderSettings.of({}) == ProviderSettings(), "the simulator must behave like the plugin"
    found = unsupported_settings(
        {"enableServerSideApply": "false", "renderYamlToDirectory": "out", "namespace": "a"}
    )
    assert set(found) == {"enableServerSideApply", "renderYamlToDirectory"}, "only these two"
    assert "leave it unset" in found["renderYamlToDirectory"], "the message must contain the fix"
    assert unsupported_settings({"kubeconfig": "x", "enableServerSideApply": "true"}) == {}, "all supported"
