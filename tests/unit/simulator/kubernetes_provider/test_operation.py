"""Type tokens, annotations and settings are read like the real provider reads them."""

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.operation import (
    Kind,
    Settings,
    is_patch,
    kind_of,
    propagation,
    timeout_seconds,
    unsupported_settings,
)


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("kubernetes:core/v1:ConfigMap", Kind(api_version="v1", kind="ConfigMap")),
        ("kubernetes:apps/v1:Deployment", Kind(api_version="apps/v1", kind="Deployment")),
        ("kubernetes:karpenter.sh/v1:NodePool", Kind(api_version="karpenter.sh/v1", kind="NodePool")),
    ],
)
def test_token_maps_to_its_kind(token: str, kind: Kind) -> None:
    assert kind_of(token) == kind, "the object would have another kind"


@pytest.mark.parametrize("token", ["kubernetes:v1:Pod", "aws:s3/bucket:Bucket", "kubernetes:helm:"])
def test_invalid_token_is_refused(token: str) -> None:
    with pytest.raises(RehearsalError, match=token):
        kind_of(token)


def test_kind_with_a_name_that_ends_in_patch_is_no_patch() -> None:
    assert not is_patch("kubernetes:x.io/v1:SourcePatch", "SourcePatch"), "its object must be deleted"
    assert is_patch("kubernetes:core/v1:ConfigMapPatch", "ConfigMap"), "a deletion keeps the object"


def annotated(name: str, value: str) -> Json:
    return {"metadata": {"annotations": {f"pulumi.com/{name}": value}}}


@pytest.mark.parametrize(
    ("custom", "value", "seconds"), [(30, "20", 30), (0, "20", 20), (0, "soon", 600), (0, "", 600)]
)
def test_custom_timeout_precedes_annotation_and_default(custom: float, value: str, seconds: float) -> None:
    assert timeout_seconds(annotated("timeoutSeconds", value), custom) == seconds, "in this order"


@pytest.mark.parametrize(
    ("value", "policy"), [("orphan", "Orphan"), ("Background", "Background"), ("", "Foreground")]
)
def test_deletion_propagation_is_foreground_unless_annotated(value: str, policy: str) -> None:
    assert propagation(annotated("deletionPropagationPolicy", value)) == policy, "pods are deleted first"


def test_settings_have_the_defaults_of_the_plugin_and_unsupported_ones_a_fix() -> None:
    for value in (True, "true"):
        assert Settings.of({"upsertExistingObjects": value}).upserts, f"{value!r} is true"
    assert not Settings.of({"upsertExistingObjects": "false"}).upserts, "the text false is not true"
    assert Settings.of({}) == Settings(), "the simulator must behave like the plugin"
    found = unsupported_settings(
        {"enableServerSideApply": "false", "renderYamlToDirectory": "out", "namespace": "a"}
    )
    assert set(found) == {"enableServerSideApply", "renderYamlToDirectory"}, "only these two"
    assert "leave it unset" in found["renderYamlToDirectory"], "the message must contain the fix"
    assert unsupported_settings({"kubeconfig": "x", "enableServerSideApply": "true"}) == {}, "all supported"
