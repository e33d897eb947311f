"""Versions are read from go.mod, the file that decides what is built."""

from pathlib import Path

import pytest
import yaml

from holdfast.infra import versions
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.catalog import CHAINS, TOOLS, Tool, parse_go_mod, read_go_module, tool_named
from holdfast.simulator.tools.charts import CHARTS
from tests.support.tool_workspace import PROJECT

FOLDER = Path("tools/example")
GO_MOD = """\
module holdfast.dev/tools/example

go 1.26

replace (
\tk8s.io/api => k8s.io/api v0.1.0
)
replace example.com/one => example.com/fork v9.9.9

tool (
\texample.com/one/cmd/thing
)

require example.com/alone v1.0.0
require (
\texample.com/one v1.2.3 // indirect
\texample.com/one/cmd v2.0.0 // indirect
)
"""


def test_both_forms_of_require_are_read_and_replacements_are_none() -> None:
    read = parse_go_mod(FOLDER, GO_MOD)
    assert read.requires == {
        "example.com/alone": "v1.0.0",
        "example.com/one": "v1.2.3",
        "example.com/one/cmd": "v2.0.0",
    }, "a replacement is no pin of its own"
    assert str(read.go) == "1.26.0", "a language version without a patch is its first release"


def test_a_package_belongs_to_the_longest_matching_module() -> None:
    read = parse_go_mod(FOLDER, GO_MOD)
    assert read.providing("example.com/one/cmd/thing") == ("example.com/one/cmd", "v2.0.0"), (
        "as Go itself resolves it"
    )
    assert read.providing("example.com/one") == ("example.com/one", "v1.2.3"), "a module is also a package"


def test_a_module_that_is_not_required_is_named_with_the_command_that_adds_it() -> None:
    with pytest.raises(RehearsalError, match=r"requires no module for example.com/onetwo.*go get -tool"):
        parse_go_mod(FOLDER, GO_MOD).providing("example.com/onetwo")


def test_a_missing_go_mod_is_one_clear_message(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match="cannot be read"):
        read_go_module(tmp_path)


def upstream_tools() -> list[Tool]:
    """The tools whose package is upstream's; one of ours is kept by its own imports."""
    return [tool for tool in TOOLS if tool.version_of is None]


@pytest.mark.parametrize("tool", upstream_tools(), ids=lambda tool: tool.name)
def test_every_tool_is_kept_by_a_tool_directive(tool: Tool) -> None:
    module = read_go_module(PROJECT / "tools" / tool.module)
    assert tool.package in module.tools, f"`go mod tidy` in tools/{tool.module} would drop {tool.package}"


def test_a_tool_of_ours_has_sources_and_the_version_of_what_it_wraps() -> None:
    (ours,) = (tool for tool in TOOLS if tool not in upstream_tools())
    assert ours.name == "karpenter-kwok", "the others are upstream's as they are"
    assert ours.own_sources(PROJECT), "go.mod alone does not decide it"
    assert str(ours.pin(PROJECT)) == versions.KARPENTER, "it is Karpenter's own core"


def test_every_tool_directive_is_catalogued() -> None:
    directives = {
        (folder.parent.name, package)
        for folder in (PROJECT / "tools").glob("*/go.mod")
        for package in read_go_module(folder.parent).tools
    }
    catalogued = {(tool.module, tool.package) for tool in upstream_tools()}
    assert directives == catalogued, "what is pinned is built, and what is built is pinned"


def test_every_module_is_built_in_one_chain() -> None:
    chained = sorted(module for chain in CHAINS for module in chain)
    built = sorted({tool.module for tool in TOOLS})
    assert chained == built, "a module in no chain is never built, one in two chains is built twice"


def test_every_module_is_built_or_fetched_for_a_chart() -> None:
    used = {tool.module for tool in TOOLS} | {chart.module for chart in CHARTS}
    folders = {folder.parent.name for folder in (PROJECT / "tools").glob("*/go.mod")}
    assert used == folders, "pins that nothing reads go stale unseen"


def test_all_of_kubernetes_is_one_release() -> None:
    module = read_go_module(PROJECT / "tools" / "kubernetes")
    text = (module.folder / "go.mod").read_text(encoding="utf-8")
    pin = tool_named("kube-apiserver").pin(PROJECT)
    replaced = {line.split()[-1] for line in text.splitlines() if " => k8s.io/" in line}
    assert replaced == {f"v0.{pin.minor}.{pin.patch}"}, (
        "staging modules of another release would not compile together"
    )


def test_the_control_plane_is_of_the_version_the_platform_declares() -> None:
    pin = tool_named("kube-apiserver").pin(PROJECT)
    assert f"{pin.major}.{pin.minor}" == versions.KUBERNETES, (
        "the rehearsal must rehearse the declared Kubernetes"
    )


@pytest.mark.parametrize(
    ("declared", "tool"),
    [
        (versions.JOBSET, "jobset-controller"),
        (versions.KUBERAY, "kuberay-operator"),
        (versions.KARPENTER, "karpenter-kwok"),
    ],
)
def test_an_operator_runs_here_in_the_version_that_is_deployed(declared: str, tool: str) -> None:
    assert declared == str(tool_named(tool).pin(PROJECT)), (
        f"infra/versions.py and tools/ disagree about {tool}"
    )


def test_a_chart_is_of_the_version_of_its_operator() -> None:
    deployed = [chart for chart in CHARTS if chart.module != "charts" and chart.name != "karpenter-azure"]
    operators = {chart.name: str(chart.pin(PROJECT)) for chart in deployed}
    assert operators == {
        "jobset": versions.JOBSET,
        "kuberay-operator": versions.KUBERAY,
        "karpenter-kwok": versions.KARPENTER,
        "karpenter": versions.KARPENTER,
    }, "a chart of another release deploys flags its operator does not know"


def test_what_aks_runs_by_itself_is_near_to_the_karpenter_that_plays_it() -> None:
    (aks,) = (chart.pin(PROJECT) for chart in CHARTS if chart.name == "karpenter-azure")
    core = tool_named("karpenter-kwok").pin(PROJECT)
    assert (aks.major, aks.minor) == (core.major, core.minor), (
        "its kinds are read by a core of another release"
    )


def test_nvidias_chart_is_of_the_version_that_is_deployed() -> None:
    (nvidia,) = (chart for chart in CHARTS if chart.name == "nvidia-device-plugin")
    assert str(nvidia.pin(PROJECT)) == versions.NVIDIA_DEVICE_PLUGIN, (
        "change both: the module and the constant"
    )


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
def test_a_gathered_chart_says_the_version_that_is_asked_for(chart: str, declared: str) -> None:
    described = yaml.safe_load(
        (PROJECT / ".tools" / "charts" / chart / "Chart.yaml").read_text(encoding="utf-8")
    )
    assert described["version"] == declared, "a rehearsal would refuse the release: run `make tools`"
