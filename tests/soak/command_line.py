"""`python -m tests.soak cli`: the local stack through the Pulumi command line, its language host and the real plugin.

The rehearsal runs the program inside the Automation API, with a pass-through in front of the plugin. Here nothing of that is used: the
`pulumi` command starts Python through its language host, and the published Kubernetes plugin talks to the API server.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import yaml

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.output import say
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks.stack import StackEnvironment
from tests.soak.bench.measurement import REPETITIONS, Measurement, measure, median_of, render

STACK: Final = "local"
KUBERNETES_PLUGIN: Final = "pulumi-resource-kubernetes"
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
# The resources of the local stack as a program of its own registers them, with the classes of the SDK: what Holdfast
# itself adds is the difference.
_SAME_RESOURCES: Final = """
import json
import re
from importlib import import_module
from pathlib import Path

import pulumi
from pulumi_kubernetes import Provider
from pulumi_kubernetes.apiextensions import CustomResource

provider = Provider("cluster", kubeconfig={kubeconfig!r})
opts = pulumi.ResourceOptions(provider=provider)


def register(token, name, inputs):
    package, module, kind = token.split(":")
    if package != "kubernetes":
        pulumi.ComponentResource(token, name)
        return
    group, _, version = module.partition("/")
    try:
        sdk = import_module("pulumi_kubernetes." + group.partition(".")[0] + "." + version)
    except ModuleNotFoundError:
        CustomResource(name, api_version=module, kind=kind, metadata=inputs["metadata"], spec=inputs.get("spec"), opts=opts)
        return
    words = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
    known = {{words.sub("_", key).lower(): value for key, value in inputs.items()}}
    getattr(sdk, kind)(name, opts=opts, **known)


for one in json.loads(Path("resources.json").read_text()):
    register(one["type"], one["name"], one["inputs"])
"""
_LOCAL: Final = "local stack"
_PACKED: Final = "with the pack"
#: The most that a preview may take, as a multiple of the one that it is compared with.
_STACK_AIM: Final = 1.25
_PACK_AIM: Final = 1.10
_EMPTY_PACK: Final = Path(__file__).parent / "bench" / "empty_pack"


def missing_programs() -> list[str]:
    """Return the programs of a Pulumi installation that are not on PATH."""
    return [program for program in _NEEDED if shutil.which(program) is None]


def command_line(workspace: Workspace) -> int:
    """Preview, bring up, compare and destroy the local stack; then compare its preview with others.

    Returns 0, also when a program is missing: the summary says so. Raises RehearsalError if a command fails.
    """
    with prepared(workspace) as cli:
        if cli is not None:
            _run(cli)
            compare_previews(cli)
    return 0


@contextmanager
def prepared(workspace: Workspace) -> Generator["Cli | None"]:
    """Start a control plane, and yield the command with the local stack; None, and say why, if a program is missing."""
    if missing := missing_programs():
        say(
            f"skipped: {' and '.join(missing)} not on PATH. The Pulumi installation has the language host; "
            "`pulumi plugin install resource kubernetes` installs the plugin in ~/.pulumi/plugins: add both to PATH."
        )
        yield None
        return
    environment = StackEnvironment(stack=_RUN_AS, workspace=workspace, report=say)
    with tempfile.TemporaryDirectory(prefix="holdfast-cli-") as folder:
        try:
            environment.start()
            cli = Cli.prepare(Path(folder), workspace)
            cli.call("stack", "init", STACK)
            yield cli
        finally:
            environment.remove()


@dataclass(frozen=True, kw_only=True)
class Cli:
    """The `pulumi` command on copies of the project's files; `folder` holds them, its state and its plugins."""

    pulumi: Path
    folder: Path
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
            pulumi=workspace.tools_bin / "pulumi", folder=folder, kubeconfig=workspace.kubeconfig(_RUN_AS)
        )
        _configure(project / "stacks" / f"Pulumi.{STACK}.yaml", cli.kubeconfig, workspace.charts_dir)
        cli.install_kubernetes()
        return cli

    def install_kubernetes(self) -> None:
        """Make the state, and install the Kubernetes plugin from PATH."""
        (self.folder / "state").mkdir()
        plugin = shutil.which(KUBERNETES_PLUGIN)
        self.call(
            "plugin",
            "install",
            "resource",
            "kubernetes",
            version("pulumi-kubernetes"),
            "-f",
            str(plugin),
            folder=".",
        )

    def run(self, *arguments: str, folder: str) -> subprocess.CompletedProcess[str]:
        """Run `pulumi` in a project and return its exit code and output."""
        return subprocess.run(
            [str(self.pulumi), *arguments, "--non-interactive"],
            cwd=self.folder / folder,
            env={**os.environ, **self.environment()},
            capture_output=True,
            text=True,
            check=False,
        )

    def call(self, *arguments: str, folder: str = "project") -> str:
        """Run `pulumi` and return its output. Raises RehearsalError with its last lines if it fails."""
        done = self.run(*arguments, folder=folder)
        if done.returncode:
            last_lines = "\n".join((done.stdout + done.stderr).strip().splitlines()[-30:])
            raise RehearsalError(f"pulumi {' '.join(arguments)} failed:\n{last_lines}")
        return done.stdout

    def measured(self, *arguments: str, folder: str = "project") -> Measurement:
        """Run `pulumi` and return its cost."""
        settings = [f"{name}={value}" for name, value in self.environment().items()]
        command = ["env", *settings, str(self.pulumi), *arguments, "--non-interactive"]
        return measure(command, cwd=self.folder / folder)

    def environment(self) -> Mapping[str, str]:
        """Return the settings of the command: a state in the folder, and no download."""
        return {
            "PULUMI_HOME": str(self.folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{self.folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "local",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            # Compiled modules are kept, as after an installation, and not in the checkout.
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(self.folder / "compiled"),
        }


def _configure(file: Path, kubeconfig: Path, charts: Path) -> None:
    stack = yaml.safe_load(file.read_text(encoding="utf-8"))
    platform = stack["config"]["holdfast:platform"]
    platform["cluster"] = {**platform.get("cluster", {}), "kubeconfig": str(kubeconfig)}
    platform["mirror"] = {**platform.get("mirror", {}), "charts": str(charts)}
    file.write_text(yaml.safe_dump(stack), encoding="utf-8")


def _run(cli: Cli) -> None:
    pack = ("--policy-pack", "policies")
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


def compare_previews(cli: Cli) -> None:
    """Measure previews of new stacks in turn: ConfigMaps, the local stack's resources, the stack, and it with packs.

    An empty pack shows what Pulumi takes to start any pack.
    """
    planned = json.loads(cli.call("preview", "-s", STACK, "--json"))["steps"]
    resources = [_resource(step["newState"]) for step in planned if not _is_root(step["urn"])]
    count = len(resources)
    cluster = str(cli.kubeconfig)
    maps = _CONFIG_MAPS.format(kubeconfig=cluster, count=count)
    with (
        _program(cli, "config-maps", maps) as config_maps,
        _program(cli, "same", _SAME_RESOURCES.format(kubeconfig=cluster)) as same,
    ):
        (cli.folder / same / "resources.json").write_text(json.dumps(resources), encoding="utf-8")
        preview = ("preview", "-s")
        subjects: Mapping[str, tuple[str, Sequence[str]]] = {
            f"{count} ConfigMaps": (config_maps, (*preview, "bench")),
            "the same resources": (same, (*preview, "bench")),
            _LOCAL: ("project", (*preview, STACK)),
            "with an empty pack": ("project", (*preview, STACK, "--policy-pack", str(_EMPTY_PACK))),
            _PACKED: ("project", (*preview, STACK, "--policy-pack", "policies")),
        }
        found: dict[str, list[Measurement]] = {subject: [] for subject in subjects}
        # The first round compiles the modules of Python, as an installation does.
        for repetition in range(REPETITIONS + 1):
            for subject, (place, arguments) in subjects.items():
                one = cli.measured(*arguments, folder=place)
                say(f"  preview of {subject}: {one.cpu_seconds:.2f} s of CPU")
                if repetition:
                    found[subject].append(one)
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
    for line in against_aims(base, medians[_LOCAL], medians[_PACKED]):
        say(line)


def against_aims(config_maps: Measurement, stack: Measurement, packed: Measurement) -> list[str]:
    """Return a sentence for each aim: the ratios of the time and of the CPU time, and whether they meet it."""
    return [
        _against("The local stack, to as many ConfigMaps", stack, config_maps, aim=_STACK_AIM),
        _against("The local stack with the pack, to without", packed, stack, aim=_PACK_AIM),
    ]


def _against(title: str, one: Measurement, base: Measurement, *, aim: float) -> str:
    time, cpu = one.seconds / base.seconds, one.cpu_seconds / base.cpu_seconds
    verdict = "met" if max(time, cpu) <= aim else "not met"
    return f"{title}: {time:.2f} of the time, {cpu:.2f} of the CPU. Aim: at most {aim:.2f} ({verdict})."


@contextmanager
def _program(cli: Cli, name: str, program: str) -> Generator[str]:
    folder = cli.folder / name
    folder.mkdir()
    runtime = {"name": "python", "options": {"toolchain": "pip", "virtualenv": ".venv"}}
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": name, "runtime": runtime}), encoding="utf-8")
    (folder / ".venv").symlink_to(Path(sys.prefix))
    (folder / "__main__.py").write_text(program, encoding="utf-8")
    cli.call("stack", "init", "bench", folder=name)
    yield name


def _is_root(urn: str) -> bool:
    return "::pulumi:" in urn


def _resource(state: Mapping[str, Any]) -> Mapping[str, Any]:
    inputs = {key: value for key, value in state.get("inputs", {}).items() if not key.startswith("__")}
    return {"type": state["type"], "name": str(state["urn"]).rpartition("::")[2], "inputs": inputs}
