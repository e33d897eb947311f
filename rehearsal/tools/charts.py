"""The upstream charts, copied out of the pinned modules so that their paths are stable."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rehearsal.errors import RehearsalError
from rehearsal.paths import Workspace
from rehearsal.tools.pins import pinned_version
from rehearsal.tools.stamps import fingerprint, stamped
from rehearsal.tools.versions import Version


@dataclass(frozen=True, kw_only=True)
class ChartSource:
    """One chart: `folder` inside `go_module`, which tools/`module`/go.mod pins.

    `more_crds` are folders of the same module whose CRDs the chart needs and does not carry.
    """

    name: str
    module: str
    go_module: str
    folder: PurePosixPath
    more_crds: tuple[PurePosixPath, ...] = ()

    @property
    def title(self) -> str:
        """The name it is shown under: a chart may share its name with the program it installs."""
        return f"{self.name} chart"

    def pin(self, project_root: Path) -> Version:
        """The version of the module, which is its operator's."""
        return pinned_version(project_root, self.module, self.go_module)


CHARTS = (
    ChartSource(
        name="jobset",
        module="kubernetes",
        go_module="sigs.k8s.io/jobset",
        folder=PurePosixPath("charts/jobset"),
    ),
    ChartSource(
        name="kuberay-operator",
        module="kuberay",
        go_module="github.com/ray-project/kuberay",
        folder=PurePosixPath("helm-chart/kuberay-operator"),
    ),
    ChartSource(
        name="karpenter",
        module="kubernetes",
        go_module="sigs.k8s.io/karpenter",
        folder=PurePosixPath("kwok/charts"),
        more_crds=(PurePosixPath("kwok/apis/crds"),),
    ),
)


def chart_fingerprint(source: ChartSource, workspace: Workspace) -> str:
    """What decides a copied chart: the module's version and content hash, and which of its folders are taken."""
    project_root = workspace.project_root
    pin = source.pin(project_root)
    sums = (project_root / "tools" / source.module / "go.sum").read_text(encoding="utf-8")
    line = re.search(rf"^{re.escape(source.go_module)} v{re.escape(str(pin))} h1:\S+$", sums, re.MULTILINE)
    if line is None:
        raise RehearsalError(
            f"tools/{source.module}/go.sum has no hash of {source.go_module} v{pin}: run `go mod tidy` in tools/{source.module}"
        )
    return fingerprint(line[0], str(source.folder), *(str(folder) for folder in source.more_crds))


def chart_current(source: ChartSource, workspace: Workspace) -> bool:
    """Whether .tools/charts holds this chart as the pins ask for it."""
    there = (workspace.charts_dir / source.name / "Chart.yaml").is_file()
    return there and stamped("charts", source.name, workspace) == chart_fingerprint(source, workspace)


def gather(source: ChartSource, module_dir: Path, made: Path) -> None:
    """Copy the chart and the further CRDs from the module's folder into `made`, which is laid anew.

    Raises RehearsalError where the module has no such chart.
    """
    chart = module_dir / source.folder
    if not (chart / "Chart.yaml").is_file():
        raise RehearsalError(
            f"{source.go_module} has no chart in {source.folder}: mend its entry in rehearsal/tools/charts.py"
        )
    shutil.rmtree(made, ignore_errors=True)
    _copy_folder(chart, made)
    for folder in source.more_crds:
        _copy_folder(module_dir / folder, made / "crds")


def _copy_folder(source: Path, target: Path) -> None:
    # Contents only: Go's module cache is read-only, and a copy that keeps its modes could not be replaced.
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.is_dir():
            _copy_folder(path, target / path.name)
        else:
            shutil.copyfile(path, target / path.name)
