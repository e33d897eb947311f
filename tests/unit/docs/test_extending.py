"""docs/extending.md lists every file that a new Kubernetes version, operator or cloud touches."""

from __future__ import annotations

import re
import subprocess
from typing import Final

import pytest

from holdfast.infra import versions
from holdfast.infra.clouds import CLOUDS
from tests.support.doc_pages import ROOT, DocPage

PAGE: Final = DocPage.read("docs/extending.md")
SECTIONS: Final = ("## A Kubernetes version", "## An operator", "## A cloud")

#: Files with a fact about one version, which stays true in a release that installs another one.
FACTS: Final = {
    "components/admission/pod_admission.py": "the first version with MutatingAdmissionPolicy v1",
    "components/admission/rules.py": "the first version with MutatingAdmissionPolicy v1",
    "fallback/jobs/jobset.py": "the version of a measurement",
}


def listed(section: str) -> list[str]:
    """The files of a section's table."""
    return [row[0] for row in PAGE.rows(section)[2:]]


@pytest.mark.parametrize("section", SECTIONS)
def test_every_listed_file_exists(section: str) -> None:
    assert listed(section), "the section has a table"
    missing = [path for path in listed(section) if not (ROOT / path).is_file()]
    assert not missing, f"{section} lists files that do not exist: {missing}"


@pytest.mark.parametrize(("section", "most"), [("## A Kubernetes version", 5), ("## An operator", 8)])
def test_a_change_touches_few_files(section: str, most: int) -> None:
    assert len(listed(section)) <= most, "composition roots share what they have in common"


def test_only_the_listed_files_name_the_kubernetes_version() -> None:
    version = re.escape(versions.KUBERNETES)
    command = ("git", "grep", "-lE", rf"(^|[^0-9.])v?{version}([^0-9]|$)", "--")
    sources = ("*.py", "*.md", "*.yaml", "*.yml", "*.toml", "Makefile", "Dockerfile")
    # Tests of components and simulators choose versions as examples: any supported one does.
    excluded = (":!tests", ":!docs/adr", ":!components/charts", ":!pyproject.toml")
    found = subprocess.run(
        [*command, *sources, *excluded], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = set(found.stdout.split()) - FACTS.keys() - set(listed("## A Kubernetes version"))
    assert not names, f"read the version from infra/versions.py instead of writing it in {sorted(names)}"


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


def test_every_cloud_has_the_files_of_the_list() -> None:
    own = [path for path in listed("## A cloud") if path.startswith("infra/gcp/")]
    assert len(own) >= 12, "the table lists the files of a cloud"
    for cloud in CLOUDS.keys() - {"local"}:
        for path in own:
            name = path.replace("/gcp/", f"/{cloud}/")
            # The rules of AWS fit into one module.
            if not name.startswith("infra/aws/config/pool_validation"):
                assert (ROOT / name).is_file(), f"{name} has the same name in every cloud"
