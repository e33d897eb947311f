"""What a stack may say of the fallback controller."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from holdfast.infra.config.ladder import ControllerSection

DIGEST = "sha256:" + 64 * "a"


@pytest.mark.parametrize(
    "image",
    [
        "ghcr.io/holdfast-dev/fallback-controller:0.1.0",
        f"ghcr.io/holdfast-dev/fallback-controller@{DIGEST}",
        f"registry.example.com:5000/a/b_c/controller:v1@{DIGEST}",
        "localhost:5000/controller:dev",
    ],
)
def test_an_image_with_its_registry_and_version_is_taken(image: str) -> None:
    assert ControllerSection(image=image).image == image, "as it is"


@pytest.mark.parametrize(
    "image",
    [
        "",
        "fallback-controller:0.1.0",
        "ghcr.io/holdfast-dev/fallback-controller",
        "https://ghcr.io/holdfast-dev/fallback-controller:0.1.0",
        "ghcr.io/Holdfast/fallback-controller:0.1.0",
        "ghcr.io/holdfast-dev/fallback-controller:0.1.0 ",
        "ghcr.io/holdfast-dev/fallback-controller@sha256:abc",
    ],
)
def test_an_image_of_which_something_would_have_to_be_guessed_is_refused(image: str) -> None:
    with pytest.raises(ValidationError, match="path and a tag"):
        ControllerSection(image=image)


def test_none_is_needed() -> None:
    assert ControllerSection().image is None, "the program knows its own"
