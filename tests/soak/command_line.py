"""`python -m tests.soak cli`: the local stack through the Pulumi command line, its language host and the real plugin.

The rehearsal runs the program inside the Automation API with simulated providers. Here nothing of that is used: the
`pulumi` command starts Python through its language host, and the published Kubernetes plugin talks to the API server.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from holdfast.rehearsal.output import say
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.stacks.stack import StackEnvironment
from tests.soak.bench.measurement import Measurement, median_of, render
from tests.soak.pulumi_command import KUBERNETES_PLUGIN, PulumiCommand

STACK: Final = "local"
_RUN_AS: Final = "local-cli"
_NEEDED: Final = ("pulumi-language-python", KUBERNETES_PLUGIN)
# What `pulumi` reads of the project; the package itself is imported from the virtual environment.
_PROJECT_FILES: Final = ("Pulumi.yaml", "stacks", "infra", "policies")
_CONFIG_MAPS: Final = """
import pulumi
import pulumi_kubernetes as kubernetes

provider = kubernetes.Provider("cluster", kubeconfig={kubeconfig!r})
for number in range({count}):
    kubernetes.core.v1.ConfigMap(
        f"config-{{number}}",
        metadata={{"name": f"config-{{number}}", "namespace": "default"}},
        data={{"number": str(number)}},
        opts=pulumi.ResourceOptions(provider=provider),
    )
"""


def missing_programs() -> list[str]:
    """Return the programs of a Pulumi installation that are not on PATH."""
    return [program for program in _NEEDED if shutil.which(program) is None]


def command_line(workspace: Workspace, *, repetitions: int) -> int:
    """Preview, bring up, compare and destroy the local stack; then compare its preview with as many ConfigMaps.

    Returns 0, also when a program is missing: the summary says so. Raises RehearsalError if a command fails.
    """
    missing = missing_programs()
    if missing:
        say(
            f"skipped: {' and '.join(missing)} not on PATH. The Pulumi installation has the language host; "
            "`pulumi plugin install resource kubernetes` installs the plugin in ~/.pulumi/plugins: add both to PATH."
        )
        return 0
    environment = StackEnvironment(stack=_RUN_AS, workspace=workspace, report=say)
    with tempfile.TemporaryDirectory(prefix="holdfast-cli-") as folder:
        try:
            environment.start()
            _run(Cli.prepare(Path(folder), workspace), repetitions)
        finally:
            environment.remove()
    return 0


@dataclass(frozen=True, kw_only=True)
class Cli(PulumiCommand):
    """The command on copies of the project's files."""

    kubeconfig: Path

    @classmethod
    def prepare(cls, folder: Path, workspace: Workspace) -> "Cli":
        """Copy the project, and install the plugin from PATH."""
        project = folder / "project"
        project.mkdir()
        for name in _PROJECT_FILES:
            source = workspace.project_root / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, project / name)
        (project / ".venv").symlink_to(workspace.project_root / ".venv")
        cli = cls(
            pulumi=workspace.tools_bin / "pulumi",
            folder=folder,
            kubeconfig=workspace.kubeconfig(_RUN_AS),
        )
        _configure(project / "stacks" / f"Pulumi.{STACK}.yaml", cli.kubeconfig, workspace.charts_dir)
        cli.install_kubernetes()
        return cli


def _configure(file: Path, kubeconfig: Path, charts: Path) -> None:
    stack = yaml.safe_load(file.read_text(encoding="utf-8"))
    platform = stack["config"]["holdfast:platform"]
    platform["cluster"] = {**platform.get("cluster", {}), "kubeconfig": str(kubeconfig)}
    platform["mirror"] = {**platform.get("mirror", {}), "charts": str(charts)}
    file.write_text(yaml.safe_dump(stack), encoding="utf-8")


def _run(cli: Cli, repetitions: int) -> None:
    pack = ("--policy-pack", "policies")
    cli.call("stack", "init", STACK)
    for title, arguments in (
        ("preview with the policy pack", ("preview", "-s", STACK, *pack)),
        ("up", ("up", "-s", STACK, "--yes", "--skip-preview", *pack)),
        ("up, no change", ("up", "-s", STACK, "--yes", "--skip-preview", "--expect-no-changes")),
        ("preview --refresh, no drift", ("preview", "-s", STACK, "--refresh", "--expect-no-changes")),
    ):
        cost = cli.measured(*arguments)
        say(f"  {title}: {cost.seconds:.1f} s")
    resources = len(json.loads(cli.call("stack", "export", "-s", STACK))["deployment"]["resources"])
    cost = cli.measured("destroy", "-s", STACK, "--yes", "--skip-preview")
    say(f"  destroy: {cost.seconds:.1f} s")
    left = json.loads(cli.call("stack", "export", "-s", STACK))["deployment"].get("resources", [])
    if left:
        raise RehearsalError(f"destroy left {len(left)} resources in the state")
    say(
        f"{resources} resources: every command succeeded, the second `up` and the refresh found no difference."
    )
    _compare_previews(cli, resources, repetitions)


def _compare_previews(cli: Cli, resources: int, repetitions: int) -> None:
    """Measure previews of a new stack in turn: ConfigMaps, the local stack, and the local stack with the pack."""
    with _config_maps(cli, resources) as folder:
        subjects: Mapping[str, tuple[str, Sequence[str]]] = {
            f"{resources} ConfigMaps": (folder, ("preview", "-s", "bench")),
            "local stack": ("project", ("preview", "-s", STACK)),
            "with the pack": ("project", ("preview", "-s", STACK, "--policy-pack", "policies")),
        }
        found: dict[str, list[Measurement]] = {subject: [] for subject in subjects}
        for _ in range(repetitions):
            for subject, (place, arguments) in subjects.items():
                found[subject].append(cli.measured(*arguments, folder=place))
    medians = {subject: median_of(several) for subject, several in found.items()}
    base = next(iter(medians.values()))
    table = [("preview of", "time", "ratio", "CPU", "ratio")]
    table += [
        (
            subject,
            f"{one.seconds:.1f} s",
            f"{one.seconds / base.seconds:.2f}",
            f"{one.cpu_seconds:.1f} s",
            f"{one.cpu_seconds / base.cpu_seconds:.2f}",
        )
        for subject, one in medians.items()
    ]
    for line in render(table):
        say(line)


@contextmanager
def _config_maps(cli: Cli, count: int) -> Generator[str]:
    name = "config-maps"
    folder = cli.folder / name
    folder.mkdir()
    runtime = {"name": "python", "options": {"toolchain": "pip", "virtualenv": ".venv"}}
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": name, "runtime": runtime}), encoding="utf-8")
    (folder / ".venv").symlink_to(Path(sys.prefix))
    program = _CONFIG_MAPS.format(kubeconfig=str(cli.kubeconfig), count=count)
    (folder / "__main__.py").write_text(program, encoding="utf-8")
    cli.call("stack", "init", "bench", folder=name)
    yield name
