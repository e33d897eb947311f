"""Renovate updates every pin: its expressions run over the tree, and no pinned version is outside of what they match."""

import ast
import re
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

PROJECT = Path(__file__).parents[3]

#: Pins without a source that Renovate could ask, and how they change.
BY_HAND = {
    "KARPENTER_KWOK_CHART": "no registry has the chart: it is in Karpenter's repository, and changes with KARPENTER",
    "KARPENTER_IMAGE_DIGEST": "the digest of the published chart of KARPENTER; change both together",
    "JOBSET_IMAGE_DIGEST": "the digest of JobSet's image at JOBSET; change both together",
    "NODE_IMAGE_KUBELET": "the kubelet in the images of NODE_IMAGE_RELEASE; its release notes name it",
}

#: Lines of workflows with a version that a manager of Renovate's own updates: actions, and the oldest supported Python.
_OWN_MANAGERS = re.compile(r"uses: \S+@[0-9a-f]{40} # v\d|python-version|python: \[|image: python:|runs-on")
_VERSION = re.compile(r"(?<![\w.])v?\d+\.\d+\.\d+(?![\w.])")


def configuration() -> dict[str, Any]:
    """The configuration. Its comments are lines of their own, so what remains is YAML, too."""
    text = (PROJECT / "renovate.json5").read_text(encoding="utf-8")
    return cast("dict[str, Any]", yaml.safe_load(re.sub(r"(?m)^\s*//.*$", "", text)))


def tracked(*patterns: str) -> list[str]:
    found = subprocess.run(
        ["git", "ls-files", "--", *patterns], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return [name for name in found.stdout.splitlines() if (PROJECT / name).is_file()]


def matched() -> dict[str, set[str]]:
    """By file, the versions that the custom managers match."""
    found: dict[str, set[str]] = {}
    for manager in configuration()["customManagers"]:
        patterns = [re.compile(each.strip("/")) for each in manager["managerFilePatterns"]]
        for name in tracked("*.py", ".github", "examples"):
            if not any(pattern.search(name) for pattern in patterns):
                continue
            text = (PROJECT / name).read_text(encoding="utf-8")
            for expression in manager["matchStrings"]:
                for match in re.finditer(expression.replace("(?<", "(?P<"), text):
                    found.setdefault(name, set()).add(match["currentValue"])
    return found


def constants(path: str) -> dict[str, str]:
    """The text constants of a module by name."""
    tree = ast.parse((PROJECT / path).read_text(encoding="utf-8"))
    return {
        node.target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def test_every_version_of_the_platform_is_updated_or_says_why_not() -> None:
    pins, updated = (
        constants("components/pulumi_holdfast/config/versions.py"),
        matched()["components/pulumi_holdfast/config/versions.py"],
    )
    missed = {
        name for name, value in pins.items() if value.removeprefix("v").partition("@")[0] not in updated
    }
    assert missed == BY_HAND.keys()
    assert len(updated) == len(pins) - len(BY_HAND)


def test_the_source_of_the_machine_table_is_updated() -> None:
    path = "components/pulumi_holdfast/rehearsal/tools/machine_table/aws.py"
    assert matched()[path] == {constants(path)["MOTO"]}


@pytest.mark.parametrize("name", [*tracked(".github/**/*.yaml", "examples/delivery"), "Makefile"])
def test_every_version_in_a_workflow_is_updated(name: str) -> None:
    updated = {
        f"{prefix}{each.removeprefix('v')}" for each in matched().get(name, set()) for prefix in ("", "v")
    }
    missed = [
        (number, version)
        for number, line in enumerate((PROJECT / name).read_text(encoding="utf-8").splitlines(), start=1)
        if not _OWN_MANAGERS.search(line) and not line.strip().startswith("#")
        for version in _VERSION.findall(line)
        if version not in updated
    ]
    assert missed == []


def test_every_file_of_python_packages_is_updated_or_compiled() -> None:
    settings = configuration()
    own = re.compile(r"(^|/)[\w-]*requirements([-._]\w+)?\.(txt|pip)$")
    more = [re.compile(each.strip("/")) for each in settings["pip_requirements"]["managerFilePatterns"]]
    disabled = {
        name
        for rule in settings["packageRules"]
        if rule.get("enabled") is False
        for name in rule["matchFileNames"]
    }
    files = tracked("*requirements*.txt", "*requirements*.in", "*requirements*.lock")
    updated = {
        name for name in files if any(each.search(name) for each in (own, *more)) and name not in disabled
    }
    compiled = set(settings["postUpgradeTasks"]["fileFilters"])
    assert updated | compiled == set(files)
    assert not updated & compiled, "and never both: its hashes would be stale"
    for name in compiled:
        assert "--hash=sha256:" in (PROJECT / name).read_text(encoding="utf-8"), (
            f"{name} comes from `make lock`"
        )


def test_base_images_have_a_digest_that_the_manager_of_dockerfiles_updates() -> None:
    text = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    images = re.findall(r"(?m)^ARG (\w+)=(\S+)$", text)
    assert [name for name, _ in images] == ["PYTHON"]
    assert all(re.fullmatch(r"\S+:\S+@sha256:[0-9a-f]{64}", image) for _, image in images)
    assert re.findall(r"(?m)^FROM (\S+)", text) == ["${PYTHON}", "${PYTHON}"]
