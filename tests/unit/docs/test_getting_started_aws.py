"""Numbers and names in the AWS guide equal those of the program."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from holdfast.components.network.aws import ISOLATED_SERVICES
from holdfast.components.operators.charted_operator import UPSTREAM
from holdfast.infra import versions
from holdfast.infra.aws.config.stack import AwsPlatform
from holdfast.infra.aws.preflight.checks import quota_demands
from holdfast.infra.program import load_platform
from tests.support.doc_pages import ROOT, DocPage
from tests.support.fakes.iam_linter import lint

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DocPage.read("docs/getting-started-aws.md")
CHARTS = {
    "karpenter": versions.KARPENTER,
    "jobset": versions.JOBSET,
    "kuberay-operator": versions.KUBERAY,
    "nvidia-device-plugin": versions.NVIDIA_DEVICE_PLUGIN,
    "aws-efa-k8s-device-plugin": versions.EFA_DEVICE_PLUGIN,
}


def test_every_chart_is_listed_with_its_version_and_its_upstream() -> None:
    listed = PAGE.charts("## Isolated")
    wanted = {chart: [version, UPSTREAM[chart]] for chart, version in CHARTS.items()}
    assert {chart: listed.get(chart) for chart in UPSTREAM} == wanted, "a mirror would miss one"


@pytest.mark.parametrize(
    "image",
    [
        f"karpenter/controller:{versions.KARPENTER}",
        f"jobset/jobset:v{versions.JOBSET}",
        f"kuberay/operator:v{versions.KUBERAY}",
        f"holdfast-dev/fallback-controller:{versions.FALLBACK_CONTROLLER}",
        f"pause:{versions.PAUSE}",
        f"nvidia/k8s-device-plugin:v{versions.NVIDIA_DEVICE_PLUGIN}",
        versions.KARPENTER_IMAGE_DIGEST,
    ],
)
def test_images_are_listed_at_their_versions(image: str) -> None:
    assert image in PAGE.section("## Isolated"), "the mirror of an isolated cluster would lack it"


def test_every_endpoint_of_an_isolated_network_is_listed() -> None:
    missing = [name for name in ISOLATED_SERVICES if f"`{name}`" not in PAGE.section("## Isolated")]
    assert missing == [], "an existing isolated network would lack them"


@pytest.mark.parametrize("stack", ["aws-dev", "aws-prod"])
def test_quotas_cover_full_pools(stack: str) -> None:
    platform = load_platform(ROOT / "stacks" / f"Pulumi.{stack}.yaml")
    assert isinstance(platform, AwsPlatform), "it is a stack on AWS"
    wanted = Counter[str]()
    for need in quota_demands(platform):
        wanted[need.quota.code] += need.vcpus
    owner, told = "", dict[str, int]()
    for row in [row for row in PAGE.rows("**Quotas.**") if re.fullmatch(r"L-[0-9A-F]{8}", row[2])]:
        owner = row[0] or owner
        told |= {row[2]: int(row[3])} if owner == stack else {}
    assert told == dict(wanted), "with a lower quota a pool never fills"


def test_the_deployers_permissions_are_a_valid_iam_policy(tmp_path: Path) -> None:
    (policy,) = re.findall(r"```json\n(.*?)```", PAGE.text, re.DOTALL)
    assert lint({"deployer": policy}, tmp_path) == [], "users copy it"


def test_links_are_not_dead() -> None:
    assert PAGE.dead_links() == [], "a link is dead"
