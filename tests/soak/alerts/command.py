"""`python -m tests.soak alerts`: Prometheus' promtool checks the alerts and the dashboard's queries, and plays series to them."""

import subprocess
from pathlib import Path
from typing import Final

import yaml

from pulumi_holdfast.kubernetes.monitoring import PANELS
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.output import say
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.build import Go
from pulumi_holdfast.rehearsal.tools.catalog import BUILD_FLAGS, LINK_FLAGS
from tests.soak.alerts.series import CASES, file_of_rules, file_of_tests

_MODULE: Final = Path(__file__).parent / "promtool"
_PACKAGE: Final = "github.com/prometheus/prometheus/cmd/promtool"


def alerts(workspace: Workspace) -> None:
    """Build promtool if it is not current, and run it. Raises RehearsalError with what it says if it disagrees."""
    promtool = _built(workspace)
    folder = workspace.state_dir / "alerts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules.yaml").write_text(yaml.safe_dump(file_of_rules()), encoding="utf-8")
    (folder / "tests.yaml").write_text(yaml.safe_dump(file_of_tests("rules.yaml")), encoding="utf-8")
    say(_run([str(promtool), "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"], folder).strip())
    _run([str(promtool), "test", "rules", "tests.yaml"], folder)
    say(f"{len(CASES)} sets of series fire their alerts or do not, as expected")
    for panel in PANELS:
        query = panel.expression.replace("$namespace", ".*")
        _run([str(promtool), "--experimental", "promql", "format", query], folder)
    say(f"{len(PANELS)} panels of the dashboard are PromQL")


def _built(workspace: Workspace) -> Path:
    """Build promtool with Go, whose own cache knows what is current. Raises RehearsalError with the fix."""
    promtool = workspace.tools_bin / "promtool"
    say("building promtool: from nothing it downloads 1.4 GB of Go modules and takes minutes; then seconds")
    link = f"-ldflags={' '.join(LINK_FLAGS)}"
    Go().run("promtool", ["build", *BUILD_FLAGS, link, "-o", str(promtool), _PACKAGE], _MODULE)
    return promtool


def _run(command: list[str], folder: Path) -> str:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        said = f"{ended.stdout.strip()}\n{ended.stderr.strip()}".strip()
        raise RehearsalError(f"{' '.join(command)} failed:\n{said}")
    return ended.stdout
