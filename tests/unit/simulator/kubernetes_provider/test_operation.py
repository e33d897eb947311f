"""Type tokens stand for kinds."""

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
def test_a_token_names_its_kind(token: str, kind: Kind) -> None:
    assert kind_of(token) == kind, "the object would be sent as something else"


@pytest.mark.parametrize("token", ["kubernetes:v1:Pod", "aws:s3/bucket:Bucket", "kubernetes:helm:"])
def test_another_token_is_refused_by_name(token: str) -> None:
    with pytest.raises(RehearsalError, match=token):
        kind_of(token)


def test_a_kind_that_ends_in_patch_is_no_patch() -> None:
    assert not is_patch("kubernetes:x.io/v1:SourcePatch", "SourcePatch"), "its object would never be deleted"
    assert is_patch("kubernetes:core/v1:ConfigMapPatch", "ConfigMap"), (
        "somebody else's object would be deleted"
    )


def annotated(name: str, value: str) -> Json:
    return {"metadata": {"annotations": {f"pulumi.com/{name}": value}}}


@pytest.mark.parametrize(
    ("custom", "value", "seconds"), [(30, "20", 30), (0, "20", 20), (0, "soon", 600), (0, "", 600)]
)
def test_the_programs_timeout_counts_more_than_the_annotation_and_that_more_than_ten_minutes(
    custom: float, value: str, seconds: float
) -> None:
    assert timeout_seconds(annotated("timeoutSeconds", value), custom) == seconds, (
        "the wait has another length"
    )


@pytest.mark.parametrize(
    ("value", "policy"), [("orphan", "Orphan"), ("Background", "Background"), ("", "Foreground")]
)
def test_dependents_go_first_unless_annotated(value: str, policy: str) -> None:
    assert propagation(annotated("deletionPropagationPolicy", value)) == policy, (
        "pods would outlive their owner"
    )


def test_flags_are_read_in_each_form_the_engine_gives_them() -> None:
    for value in (True, "true"):
        assert Settings.of({"upsertExistingObjects": value}).upserts, f"{value!r} is not understood"
    assert not Settings.of({"upsertExistingObjects": "false"}).upserts, "the word false is not true"


def test_an_empty_configuration_has_the_plugins_defaults() -> None:
    assert Settings.of({}) == Settings(), "a program that sets nothing would behave otherwise than for real"


def test_what_cannot_be_rehearsed_is_named_with_the_mend() -> None:
    found = unsupported_settings(
        {"enableServerSideApply": "false", "renderYamlToDirectory": "out", "namespace": "a"}
    )
    assert set(found) == {"enableServerSideApply", "renderYamlToDirectory"}, "the wrong settings are refused"
    assert "leave it unset" in found["renderYamlToDirectory"], "the fix is missing"


def test_a_plain_configuration_is_taken() -> None:
    assert unsupported_settings({"kubeconfig": "x", "enableServerSideApply": "true"}) == {}, (
        "every stack would be refused"
    )
