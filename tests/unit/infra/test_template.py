"""`holdfast init`: a new project's files, from this repository's own."""

import ast
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
import yaml
from jsonschema import Draft202012Validator

from pulumi_holdfast.cli import __main__ as command_line
from pulumi_holdfast.cli.editor_schema import stack_schema
from pulumi_holdfast.cli.template.files import MARK, marked_lines, project_files, read_stack_name
from pulumi_holdfast.cli.template.workflows import recipe_of
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.network_validation import placeholder_address_problems
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.locate import find_tool
from pulumi_holdfast.stack_program import load_platform

ROOT = Path(__file__).resolve().parents[3]
NAMES = [f"{cloud}-{environment}" for cloud in ("aws", "azure", "gcp") for environment in ("dev", "prod")]
WORKFLOWS = ("preview", "deploy", "drift")


def project(name: str) -> Mapping[str, str]:
    return project_files(read_stack_name(name), "1.2.3")


def workflows(name: str) -> str:
    return "".join(text for path, text in project(name).items() if path.startswith(".github"))


@pytest.mark.parametrize("name", NAMES)
def test_a_project_has_at_most_ten_files_and_depends_on_the_wheel_at_one_version(name: str) -> None:
    files, cloud = project(name), name.partition("-")[0]
    assert len(files) <= 10, "a newcomer reads them all"
    (requirement,) = [line for line in files["requirements.txt"].splitlines() if not line.startswith("#")]
    assert requirement == f"./wheels/holdfast-1.2.3-py3-none-any.whl[{cloud},policy]", (
        "a path: the package of that name on an index is another program"
    )
    assert len(files["__main__.py"].splitlines()) == 5, "the program is the package's"
    assert ast.parse(files["__main__.py"]), "it is Python"
    assert mapping(yaml.safe_load(files["Pulumi.yaml"]))["stackConfigDir"] == "stacks", "where the stack is"
    assert "{" not in files["README.md"], "every value is filled in"


@pytest.mark.parametrize("name", [*NAMES, "aws-research"])
def test_a_stack_file_is_valid_but_for_the_marked_lines(name: str, tmp_path: Path) -> None:
    text = project(name)[f"stacks/Pulumi.{name}.yaml"]
    file = tmp_path / "stack.yaml"
    file.write_text(text.replace("203.0.113.0/24", "192.0.43.8/32"), encoding="utf-8")
    platform = load_platform(file)
    assert platform.cloud == name.partition("-")[0], "the program accepts it"
    document = cast("Json", yaml.safe_load(text))
    judge = Draft202012Validator(stack_schema(platform.cloud))
    problems = [*judge.iter_errors(document)]  # pyright: ignore[reportUnknownMemberType] - untyped in the package
    assert not problems, "an editor marks nothing"
    unknown = {line for _, line in marked_lines(text)}
    assert unknown, "some value only the user knows"
    refused = [*placeholder_address_problems(mapping(document["config"])[PLATFORM], PLATFORM)]
    assert len(refused) == sum("203.0.113." in line for line in unknown), (
        "each address that is refused is marked"
    )
    left = re.findall(rf"(?m)^(?!.*{MARK}).*(?:123456789012|00000000-0000|203\\.0\\.113).*$", text)
    assert left == [], "an account of no one is always marked"


@pytest.mark.parametrize("name", NAMES[::2])
def test_workflows_are_those_of_this_repository_without_its_sources(name: str, tmp_path: Path) -> None:
    text, cloud = workflows(name), name.partition("-")[0]
    assert "make " not in text, "a project has no Makefile"
    assert "$(RUN)" not in text, "every variable of a recipe is expanded"
    for action in ("aws-actions/", "google-github-actions/", "Azure/login"):
        assert (action in text) == (cloud in action.lower().replace("google", "gcp")), "one cloud logs in"
    for source in WORKFLOWS:
        ours = mapping(yaml.safe_load((ROOT / ".github/workflows" / f"{source}.yaml").read_text("utf-8")))
        theirs = mapping(yaml.safe_load(project(name)[f".github/workflows/{source}.yaml"]))
        jobs = mapping(theirs["jobs"])
        assert jobs.keys() == mapping(ours["jobs"]).keys() - {"rehearse"}, "forks are not rehearsed"
        for job, settings in jobs.items():
            other = mapping(mapping(ours["jobs"])[job])
            same = {key: value for key, value in other.items() if key != "steps"}
            assert {key: value for key, value in mapping(settings).items() if key != "steps"} == same, (
                "permissions, environments and concurrency are those that are run here"
            )
    _lint(project(name), tmp_path)


def _lint(files: Mapping[str, str], folder: Path) -> None:
    """Judge the workflows by actionlint where it is built, and by zizmor."""
    for path in (each for each in files if each.startswith(".github")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(files[path], encoding="utf-8")
    linters = [[str(ROOT / ".venv/bin/zizmor"), "--offline", "--quiet", ".github"]]
    try:
        linters.append([str(find_tool("actionlint", Workspace(project_root=ROOT)))])
        subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    except RehearsalError:
        # `make workflows` builds it; unit tests need no tool.
        pass
    for linter in linters:
        judged = subprocess.run(linter, cwd=folder, capture_output=True, text=True, check=False)
        assert judged.returncode == 0, f"{linter[0]}: {judged.stdout}{judged.stderr}"


def test_every_version_in_a_project_is_updated_by_its_renovate_file() -> None:
    text = re.sub(r"(?m)^\s*//.*$", "", project("azure-dev")["renovate.json5"])
    settings = mapping(yaml.safe_load(text))
    managers = cast("list[dict[str, list[str]]]", settings["customManagers"])
    found = {
        match["currentValue"].removeprefix("v")
        for manager in managers
        for expression in manager["matchStrings"]
        for match in re.finditer(expression.replace("(?<", "(?P<"), workflows("azure-dev"))
    }
    own = re.compile(r"uses: \S+@[0-9a-f]{40} # v\d|python-version|runs-on|^\s*#")
    pinned = {
        version
        for line in workflows("azure-dev").splitlines()
        if not own.search(line)
        for version in re.findall(r"(?<![\w.])v?(\d+\.\d+\.\d+)(?![\w.])", line)
    }
    assert pinned == found, "a pin that nothing updates goes stale"


@pytest.mark.parametrize("target", ["ci-preview", "ci-post", "ci-deploy", "ci-drift"])
def test_a_recipe_is_expanded_as_make_expands_it(target: str) -> None:
    given = ["RUN=.venv/bin/holdfast", *(f"{each}=$${each}" for each in IN_A_STEP)]
    make = ["make", "--dry-run", "--no-print-directory", "--assume-old", "venv", target, *given]
    printed = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    packed = re.sub(r"(?<=[ ])policies(?=[ /])", "dist/policy-pack", printed)
    ours = recipe_of((ROOT / "Makefile").read_text("utf-8"), target)
    assert words("\n".join(ours)) == words(packed), "a project's workflow does what ours does"


IN_A_STEP = ("STACK", "BASE", "REPOSITORY", "PULL_REQUEST")


def words(script: str) -> list[str]:
    """The words of a script, however it separates its commands."""
    return script.replace("\\\n", " ").replace(";", " ").split()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ibm-dev", "aws, azure, gcp"),
        ("asw-dev", "Write, for example, aws-dev."),
        ("aws", "a cloud, a hyphen and an environment"),
        ("gcp-My_Stack", "a cloud, a hyphen and an environment"),
    ],
)
def test_a_bad_name_is_refused_with_a_good_one(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match="NAME") as refused:
        read_stack_name(name)
    assert said in str(refused.value), "the user learns what to write"


def test_init_writes_the_project_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command_line.main(["init", "aws-dev"]) == 0, "an empty place"
    printed = capsys.readouterr().out
    assert "fill in stacks/Pulumi.aws-dev.yaml:10: publicAccessCidrs" in printed, "what is the user's"
    written = {path: path.read_text("utf-8") for path in (tmp_path / "aws-dev").rglob("*") if path.is_file()}
    assert len(written) <= 10, "and nothing else"
    assert command_line.main(["init", "aws-dev"]) == 1, "a project is never written over"
    assert "a folder with files" in capsys.readouterr().err, "the user learns why"
    assert {path: path.read_text("utf-8") for path in written} == written, "it is as it was"
