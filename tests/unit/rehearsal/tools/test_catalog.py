"""The catalog has the build flags, the versions and the pins of all tools."""

from importlib import metadata

import pytest
import yaml

from pulumi_holdfast.config import versions
from pulumi_holdfast.rehearsal.tools.catalog import (
    CHAINS,
    TOOLS,
    Accepts,
    Tool,
    Version,
    parse_version,
    read_go_module,
    tool_named,
)
from pulumi_holdfast.rehearsal.tools.charts import CHARTS
from tests.support.fakes.go_toolchain import PROJECT

PIN = Version(major=1, minor=36, patch=3)


def flags(name: str) -> str:
    return " ".join(tool_named(name).build_flags(PIN))


def version(text: str) -> Version:
    parsed = parse_version(text)
    assert parsed is not None, f"{text} must be a version"
    return parsed


@pytest.mark.parametrize(
    ("rule", "pin", "accepted", "refused"),
    [
        (Accepts.SAME_MAJOR, "3.245.0", ("3.245.0", "3.246.1"), ("3.244.9", "4.0.0", "2.999.0")),
        (Accepts.NEIGHBOR_MINOR, "1.36.3", ("1.35.9", "1.37.0"), ("1.34.0", "1.38.0")),
    ],
)
def test_rule_accepts_neighbors_of_the_pin(
    rule: Accepts, pin: str, accepted: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    for found in (*accepted, *refused):
        assert rule.good(version(found), version(pin)) is (found in accepted), f"{found} against {pin}"


def upstream_tools() -> list[Tool]:
    """The tools with an upstream package; the imports of our own packages keep theirs in go.mod."""
    return [tool for tool in TOOLS if tool.version_of is None]


def test_catalog_chains_and_tool_directives_agree() -> None:
    ours = {tool.name: tool for tool in TOOLS if tool not in upstream_tools()}
    assert set(ours) == {"karpenter-kwok", "pulumi-resource-kubernetes"}
    assert all(tool.own_sources(PROJECT) for tool in ours.values())
    assert str(ours["karpenter-kwok"].pin(PROJECT)) == versions.KARPENTER
    plugin = ours["pulumi-resource-kubernetes"]
    assert str(plugin.pin(PROJECT)) == metadata.version("pulumi-kubernetes")
    assert "main.version=1.36.3" in flags(plugin.name)
    directives = {
        (folder.parent.name, package)
        for folder in (PROJECT / "tools").glob("*/go.mod")
        for package in read_go_module(folder.parent).tools
    }
    cataloged = {(tool.module, tool.package) for tool in upstream_tools()}
    assert directives == cataloged
    chained = sorted(module for chain in CHAINS for module in chain)
    built = sorted({tool.module for tool in TOOLS})
    assert chained == built
    used = {tool.module for tool in TOOLS} | {chart.module for chart in CHARTS}
    folders = {folder.parent.name for folder in (PROJECT / "tools").glob("*/go.mod")}
    assert used == folders


def test_modules_and_charts_have_the_declared_versions() -> None:
    module = read_go_module(PROJECT / "tools" / "kubernetes")
    text = (module.folder / "go.mod").read_text(encoding="utf-8")
    pin = tool_named("kube-apiserver").pin(PROJECT)
    replaced = {line.split()[-1] for line in text.splitlines() if " => k8s.io/" in line}
    assert replaced == {f"v0.{pin.minor}.{pin.patch}"}
    assert f"{pin.major}.{pin.minor}" == versions.KUBERNETES
    deployed = [chart for chart in CHARTS if chart.module != "charts" and chart.name != "karpenter-azure"]
    operators = {chart.name: str(chart.pin(PROJECT)) for chart in deployed}
    assert operators == {
        "jobset": versions.JOBSET,
        "kuberay-operator": versions.KUBERAY,
        "karpenter-kwok": versions.KARPENTER,
        "karpenter": versions.KARPENTER,
    }
    for tool, declared in (("jobset-controller", versions.JOBSET), ("kuberay-operator", versions.KUBERAY)):
        assert str(tool_named(tool).pin(PROJECT)) == declared
    (aks,) = (chart.pin(PROJECT) for chart in CHARTS if chart.name == "karpenter-azure")
    core = tool_named("karpenter-kwok").pin(PROJECT)
    assert (aks.major, aks.minor) == (core.major, core.minor)
    (nvidia,) = (chart for chart in CHARTS if chart.name == "nvidia-device-plugin")
    assert str(nvidia.pin(PROJECT)) == versions.NVIDIA_DEVICE_PLUGIN


@pytest.mark.engine
@pytest.mark.parametrize(
    ("chart", "declared"),
    [
        ("karpenter", versions.KARPENTER),
        ("karpenter-kwok", versions.KARPENTER_KWOK_CHART),
        ("nvidia-device-plugin", versions.NVIDIA_DEVICE_PLUGIN),
        ("aws-efa-k8s-device-plugin", versions.EFA_DEVICE_PLUGIN),
    ],
)
def test_copied_chart_has_the_declared_version(chart: str, declared: str) -> None:
    path = PROJECT / ".tools" / "charts" / chart / "Chart.yaml"
    described = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert described["version"] == declared, "the rehearsal would refuse the release; run `make tools`"
