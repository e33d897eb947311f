"""Type tokens stand for kinds."""

import pytest

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.tokens import Kind, is_patch, kind_of


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
