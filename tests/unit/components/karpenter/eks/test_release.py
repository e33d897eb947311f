"""Chart, image, CRDs and permissions are those of one Karpenter, the one that is pinned."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import yaml

import components
from holdfast.infra import versions
from tests.support.json_objects import obj
from tests.support.official_karpenter import official

RELEASE = official("release")
CHART = Path(components.__file__).parent / "charts" / "karpenter-crds" / "Chart.yaml"


def test_the_fixtures_are_those_of_the_version_that_is_pinned() -> None:
    assert RELEASE["version"] == versions.KARPENTER, (
        f"Karpenter is pinned at {versions.KARPENTER}: take its template, its tag and its digest into tests/fixtures, "
        "and compare what its controller may do"
    )


def test_the_crds_are_of_the_version_that_is_pinned() -> None:
    chart = obj(cast("object", yaml.safe_load(CHART.read_text("utf-8"))))
    assert chart["appVersion"] == versions.KARPENTER, (
        "a controller does not start on another's CRDs: `make crds`"
    )


def test_the_digest_is_that_of_the_image_with_the_pinned_tag() -> None:
    assert RELEASE["digest"] == versions.KARPENTER_IMAGE_DIGEST, (
        f"the digest wins over the tag: another Karpenter than {versions.KARPENTER} would run"
    )
