"""Each program is told its version when it is linked, and compiled no more carefully than it is used."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from holdfast.infra import versions
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.catalog import (
    CHAINS,
    TOOLS,
    Accepts,
    Tool,
    Version,
    parse_go_mod,
    parse_version,
    read_go_module,
    tool_named,
)
from holdfast.simulator.tools.charts import CHARTS
from tests.support.tool_workspace import PROJECT

PIN = Version(major=1, minor=36, patch=3)


def flags(name: str) -> str:
    return " ".join(tool_named(name).build_flags(PIN))


def test_a_control_plane_knows_its_version() -> None:
    told = flags("kube-apiserver")
    for variable in ("version.gitVersion=v1.36.3", "version.gitMajor=1", "version.gitMinor=36"):
        assert variable in told, "unstamped it says v0.0.0 and clients refuse it for its skew"


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.stamps], ids=lambda tool: tool.name)
def test_nothing_is_left_to_fill_in(tool: Tool) -> None:
    assert "{" not in " ".join(tool.build_flags(PIN)), (
        "a placeholder in a version is a version no one can read"
    )


def test_only_what_never_runs_is_compiled_without_inlining() -> None:
    assert "-gcflags=github.com/pb33f/libopenapi/...=-l" in flags("pulumi"), (
        "it is a quarter of the compiling"
    )
    # Without inlining everywhere helm took 1.7 s where it takes 1.2 s.
    assert not any("-gcflags" in flags(tool.name) for tool in TOOLS if tool.name != "pulumi"), (
        "the others do run"
    )


numbers = st.integers(min_value=0, max_value=10_000)
version_numbers = st.builds(Version, major=numbers, minor=numbers, patch=numbers)


def version(text: str) -> Version:
    parsed = parse_version(text)
    assert parsed is not None, f"{text} is a version, or the test is wrong"
    return parsed


@given(version_numbers)
def test_a_version_reads_back_as_it_is_written(one: Version) -> None:
    assert parse_version(f"v{one}") == one, "a version and its text are the same thing"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("v3.245.0\n", "3.245.0"),
        ("Kubernetes v1.36.3\n", "1.36.3"),
        ("etcd Version: 3.6.8\nGit SHA: Not provided\nGo Version: go1.26.8\n", "3.6.8"),
        ("kwok version v0.8.0 go1.26.8 (linux/amd64)\n", "0.8.0"),
        ("Client Version: v1.36.3\nKustomize Version: v5.8.1\n", "1.36.3"),
        ("v1.7.12\ninstalled by building from source\n", "1.7.12"),
    ],
)
def test_the_version_is_found_in_what_each_program_prints(answer: str, found: str) -> None:
    assert str(parse_version(answer)) == found, f"{answer!r} tells {found}"


@pytest.mark.parametrize("answer", ["", "unknown flag: --version", "v1.36", "v3.246.0-alpha.1"])
def test_what_is_no_release_is_no_version(answer: str) -> None:
    assert parse_version(answer) is None, f"{answer!r} promises nothing that could be relied on"


@given(version_numbers, version_numbers)
def test_an_exact_pin_takes_nothing_else(found: Version, pin: Version) -> None:
    assert Accepts.EXACT.good(found, pin) == (found == pin), "these programs must be the very version tested"


@given(version_numbers)
def test_every_rule_takes_the_pin_itself(pin: Version) -> None:
    assert all(rule.good(pin, pin) for rule in Accepts), "the pinned version is what all was tested with"


@pytest.mark.parametrize(
    ("found", "good"),
    [("3.245.0", True), ("3.246.1", True), ("3.244.9", False), ("4.0.0", False), ("2.999.0", False)],
)
def test_a_stable_command_line_may_be_newer_within_its_major(found: str, *, good: bool) -> None:
    assert Accepts.SAME_MAJOR.good(version(found), version("3.245.0")) is good, f"{found} against 3.245.0"


@pytest.mark.parametrize(
    ("found", "good"), [("1.35.9", True), ("1.37.0", True), ("1.34.0", False), ("1.38.0", False)]
)
def test_kubectl_may_be_one_minor_away_as_its_skew_policy_says(found: str, *, good: bool) -> None:
    assert Accepts.NEIGHBOUR_MINOR.good(version(found), version("1.36.3")) is good, f"{found} against 1.36.3"


def test_the_wanted_versions_are_told_in_words() -> None:
    assert Accepts.SAME_MAJOR.wanted(version("3.245.0")) == "3.245.0 or newer, below 4", "a user reads this"


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
