"""`python -m tests.soak languages`: one program in Python, TypeScript, Go and YAML, judged by the pack of `make pack`.

Each is previewed as a user previews it: by the `pulumi` command, the language's own host, the published Kubernetes plugin
and the pack in an environment of its own. The plugin renders objects into a folder, so no cluster is needed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulumi_holdfast.cli.policy_pack import build
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.output import say
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.soak.pulumi_command import KUBERNETES_PLUGIN, PulumiCommand
from tests.support.doc_pages import ROOT

_HERE: Final = Path(__file__).parent
#: Where the recordings are, one file for each language.
RECORDINGS: Final = ROOT / "tests/fixtures/languages"
#: The program's variants, by the number of pods in its gang: its on-demand pool has room for 8.
VARIANTS: Final[Mapping[str, int]] = {"sound": 8, "strands": 16}
#: The verdict on the namespace and the policy that stops the run.
_EXPECTED: Final[Mapping[str, tuple[str, str]]] = {
    "sound": ("namespace 'vision': proved", ""),
    "strands": ("namespace 'vision': broken", "training-reaches-on-demand"),
}
_RENDER: Final = "kubernetes:renderYamlToDirectory"


@dataclass(frozen=True, kw_only=True)
class Language:
    """A language of Pulumi: its folder, the programs that it needs on PATH, and what installs its packages."""

    name: str
    needs: tuple[str, ...]
    install: tuple[str, ...] = ()


PYTHON: Final = Language(name="python", needs=("pulumi-language-python",))
LANGUAGES: Final = (
    PYTHON,
    Language(
        name="typescript",
        needs=("pulumi-language-nodejs", "node", "npm"),
        install=("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"),
    ),
    Language(name="go", needs=("pulumi-language-go", "go"), install=("go", "mod", "download")),
    Language(name="yaml", needs=("pulumi-language-yaml",)),
)


def judge_languages(workspace: Workspace, *, record: bool = False) -> int:
    """Preview the program's variants in every language; the verdicts have to be those on the Python program.

    `record` keeps what the engine sent to the pack for the unit tests. Returns 0, also when programs are missing: the
    summary names them. Raises RehearsalError if a verdict differs.
    """
    lacking = _missing(PYTHON)
    if lacking:
        say(f"skipped: {', '.join(lacking)} not on PATH")
        return 0
    with tempfile.TemporaryDirectory(prefix="holdfast-languages-") as folder:
        command = PulumiCommand(pulumi=workspace.tools_bin / "pulumi", folder=Path(folder))
        command.install_kubernetes()
        _make_packs(command)
        reports: dict[str, Mapping[str, str]] = {}
        for language in LANGUAGES:
            lacking = _missing(language)
            if lacking:
                say(f"  {language.name}: skipped, {', '.join(lacking)} not on PATH")
                continue
            reports[language.name] = _judge(command, language, record=record)
            differing = [
                each for each in VARIANTS if reports[language.name][each] != reports[PYTHON.name][each]
            ]
            for each in differing:
                raise RehearsalError(
                    f"the {language.name} program {each!r} is judged differently:\n{reports[language.name][each]}\n"
                    f"Python's:\n{reports[PYTHON.name][each]}"
                )
            say(f"  {language.name}: {', '.join(f'{name} as expected' for name in VARIANTS)}, as in Python")
    return 0


def _missing(language: Language) -> list[str]:
    return [each for each in (*language.needs, KUBERNETES_PLUGIN) if shutil.which(each) is None]


def _make_packs(command: PulumiCommand) -> None:
    """Build the pack with an environment of its own, as docs/policies.md says, and the pack that records."""
    pack = command.folder / "policy-pack"
    build(pack)
    _checked([sys.executable, "-m", "venv", str(pack / "venv")], command.folder)
    pip = [
        str(pack / "venv/bin/pip"),
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
    ]
    _checked([*pip, "-r", str(pack / "requirements.txt")], command.folder)
    shutil.copytree(_HERE / "recorder", command.folder / "recorder")
    (command.folder / "recorder/.venv").symlink_to(Path(sys.prefix))


def _judge(command: PulumiCommand, language: Language, *, record: bool) -> Mapping[str, str]:
    """Return what the pack reports on each variant of the language's program. Raises RehearsalError if it is not expected."""
    shutil.copytree(_HERE / "programs" / language.name, command.folder / language.name)
    if language is PYTHON:
        (command.folder / language.name / ".venv").symlink_to(Path(sys.prefix))
    if language.install:
        _checked(language.install, command.folder / language.name)
    recording = command.folder / "recording.json"
    os.environ["RECORDING"] = str(recording)
    reports: dict[str, str] = {}
    recorded: dict[str, object] = {}
    for variant, pods in VARIANTS.items():
        stack = f"{language.name}-{variant}"
        command.call("stack", "init", stack, folder=language.name)
        command.call("config", "set", "pods", str(pods), "-s", stack, folder=language.name)
        command.call("config", "set", _RENDER, "rendered", "-s", stack, folder=language.name)
        packs = ("--policy-pack", "../policy-pack", "--policy-pack", "../recorder")
        done = command.run("preview", "-s", stack, *packs, folder=language.name)
        reports[variant] = report_of(done.stdout)
        word, stopped_by = _EXPECTED[variant]
        stops = [line for line in done.stdout.splitlines() if "[mandatory]" in line]
        expected = all(stopped_by in line for line in stops) and bool(stops) == bool(stopped_by)
        if word not in reports[variant] or not expected or bool(done.returncode) != bool(stopped_by):
            raise RehearsalError(
                f"the {language.name} program {variant!r} ended with {done.returncode}, without {word!r} "
                f"or not stopped by {stopped_by or 'nothing'}:\n{done.stdout}{done.stderr}"
            )
        recorded[variant] = json.loads(recording.read_text(encoding="utf-8"))
    if record:
        RECORDINGS.mkdir(exist_ok=True)
        text = json.dumps(recorded, separators=(",", ":"), sort_keys=True)
        (RECORDINGS / f"{language.name}.json").write_text(text + "\n", encoding="utf-8")
    return reports


def report_of(output: str) -> str:
    """Return the messages of a report, in order; a line about which resource a message is on is left out.

    In YAML, other resources make the NodePools, so their logical names differ.
    """
    _, _, policies = output.partition("\nPolicies:\n")
    shown = policies.partition("\n\n")[0].splitlines()
    return "\n".join(sorted(line for line in shown if line.startswith(" " * 10)))


def _checked(command: tuple[str, ...] | list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RehearsalError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
