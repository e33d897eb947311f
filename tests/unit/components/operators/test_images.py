"""Which registry an image is pulled from."""

import pytest

from holdfast.components.operators.device_plugins import eks_registry
from holdfast.components.operators.pod_settings import image
from holdfast.scheduling.machines import regions

UPSTREAM = "quay.io/kuberay/operator"


def test_without_a_mirror_an_image_is_upstreams() -> None:
    assert image(None, UPSTREAM) == UPSTREAM, "as its project publishes it"


@pytest.mark.parametrize("mirror", ["registry.example.com/mirror", "registry.example.com/mirror/"])
def test_a_mirror_takes_the_place_of_the_registrys_host(mirror: str) -> None:
    assert image(mirror, UPSTREAM) == "registry.example.com/mirror/kuberay/operator", (
        "what is copied with its path is found by its path"
    )


def test_images_of_the_same_name_stay_apart_in_a_mirror() -> None:
    one, other = image("mirror", "quay.io/kuberay/operator"), image("mirror", "quay.io/other/operator")
    assert one != other, "the path before the name is kept"


@pytest.mark.parametrize(
    ("region", "registry"),
    [
        ("us-east-1", "602401143452.dkr.ecr.us-east-1.amazonaws.com"),
        ("ca-west-1", "761377655185.dkr.ecr.ca-west-1.amazonaws.com"),
        ("cn-north-1", "918309763551.dkr.ecr.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "013241004608.dkr.ecr.us-gov-west-1.amazonaws.com"),
    ],
)
def test_each_region_has_eks_images_in_a_registry_of_its_own(region: str, registry: str) -> None:
    assert eks_registry(region) == registry, "the one that its endpoint leads to"


def test_a_registry_is_an_account_and_its_region() -> None:
    for region in regions("aws"):
        account, _, rest = eks_registry(region).partition(".")
        assert (len(account), account.isdigit()) == (12, True), f"{account} is no account"
        assert rest.startswith(f"dkr.ecr.{region}."), f"{region} is reached in {rest}"
