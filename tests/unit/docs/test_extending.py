"""docs/extending.md lists every file that a new Kubernetes version, operator or cloud touches."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

import pytest

from pulumi_holdfast.config import versions
from tests.support.doc_pages import ROOT, DocPage

PAGE: Final = DocPage.read("docs/extending.md")
SECTIONS: Final = ("## A Kubernetes version", "## An operator", "## A cloud")

#: Files with a fact about one version, which stays true in a release that installs another one.
FACTS: Final = {
    "components/pulumi_holdfast/kubernetes/admission/pod_admission.py": "the first version with MutatingAdmissionPolicy v1",
    "components/pulumi_holdfast/kubernetes/admission/rules.py": "the first version with MutatingAdmissionPolicy v1",
    "components/pulumi_holdfast/controller/jobs/pod_templates.py": "the version of a measurement",
    "README.md": "the oldest version that is supported",
    "docs/getting-started-aws.md": "the oldest version that is supported",
    "docs/getting-started-azure.md": "the oldest version that is supported",
    "docs/getting-started-gcp.md": "the oldest version that is supported",
}


#: What names KubeRay or Google Cloud and does not change with an operator or a cloud.
OPERATOR_FACTS: Final = {
    "components/pulumi_holdfast/cli/editor_schema.py": "the chart with the definition of RayJobs, which the pack reads",
    "components/pulumi_holdfast/kubernetes/admission/rayjob.py": "the name that the API of RayJobs has for KubeRay",
    "components/pulumi_holdfast/controller/jobs/child_templates.py": "the labels that KubeRay sets on what it creates",
}


def listed(section: str) -> list[str]:
    """The files of a section's tables."""
    cells = [row[0] for row in PAGE.rows(section)]
    return [path for cell in cells if cell != "file" and set(cell) != {"-"} for path in cell.split("`, `")]


def sources(*patterns: str) -> list[str]:
    """The files of the repository that a change of the product touches: no tests, pages or generated charts."""
    excluded = (":!tests", ":!docs", ":!components/pulumi_holdfast/kubernetes/charts")
    command = ("git", "ls-files", "--", *patterns, *excluded)
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in found.stdout.split() if (ROOT / path).exists()]


def modules_naming(pattern: str) -> set[str]:
    """The modules with such an identifier, import or string of one word: comments and prose may name anything."""
    word = re.compile(rf"(?i)(?:^|[/._-]|\b)(?:{pattern})(?:$|[/._-]|\b)")
    texts = {path: (ROOT / path).read_text("utf-8") for path in sources("*.py")}
    return {
        path
        for path, text in texts.items()
        if word.search(text) and any(word.search(name) for name in names_in(text))
    }


def names_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.keyword(arg=str(name)) | ast.alias(name=name):
                yield name
            case ast.ImportFrom(module=str(name)):
                yield name
            case ast.Constant(value=str(text)) if not re.search(r"\s", text):
                yield text
            case _:
                pass


def is_below(path: str, folders: list[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_listed_file_exists(section: str) -> None:
    assert listed(section)
    missing = [path for path in listed(section) if not (ROOT / path).exists()]
    assert not missing, f"{section} lists files that do not exist: {missing}"


@pytest.mark.parametrize(("section", "most"), [("## A Kubernetes version", 8), ("## An operator", 10)])
def test_a_change_touches_few_files(section: str, most: int) -> None:
    assert len(listed(section)) <= most


def test_only_the_listed_files_name_the_kubernetes_version() -> None:
    version = re.escape(versions.KUBERNETES)
    written = rf"(^|[^0-9.])v?{version}([^0-9]|$)"
    # Prices, and versions of other packages, have the same numbers.
    pinned = rf'"v?{version}[".]|kube[a-z-]*[@=]+v?{version}[^0-9]'
    known = [*FACTS, *listed("## A Kubernetes version")]
    for pattern, sources in (
        (written, ("*.py", "*.md", "*.yaml", "*.yml", "Makefile", "Dockerfile")),
        (pinned, ("*.json", "*.toml", "*.lock", "*/requirements.txt")),
    ):
        # Tests of components and simulators choose versions as examples: any supported one does.
        excluded = (":!tests", ":!docs/adr", ":!components/pulumi_holdfast/kubernetes/charts")
        command = ("git", "grep", "-lE", pattern, "--", *sources, *excluded)
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        names = [path for path in found.stdout.split() if not is_below(path, known)]
        assert not names, (
            f"read the version from components/pulumi_holdfast/config/versions.py instead of writing it in {names}"
        )


def test_every_listed_file_names_the_kubernetes_version() -> None:
    files = [
        path
        for each in listed("## A Kubernetes version")
        for path in ([ROOT / each] if (ROOT / each).is_file() else (ROOT / each).iterdir())
    ]
    stale = [str(path) for path in files if versions.KUBERNETES not in path.read_text("utf-8")]
    assert not stale


def test_tests_of_configuration_and_stacks_read_the_version() -> None:
    found = subprocess.run(
        [
            "git",
            "grep",
            "-lF",
            f'"{versions.KUBERNETES}',
            "--",
            "tests/unit/infra",
            "tests/support/invalid_configs",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not found.stdout, "otherwise an upgrade of Kubernetes changes tests too"


def test_only_the_listed_files_name_an_operator() -> None:
    others = sources("*.yaml", "*.yml", "*.json", "*.toml", "*.mod", "Makefile", "Dockerfile", ":!examples")
    named = modules_naming("kuberay") | {
        path for path in others if "kuberay" in (ROOT / path).read_text("utf-8").lower()
    }
    assert named - OPERATOR_FACTS.keys() == set(listed("## An operator"))
