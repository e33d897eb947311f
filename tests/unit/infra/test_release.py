"""A release: the same bytes from the same commit, and what it says about itself."""

import hashlib
import io
import json
import re
import tarfile
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.cli.release.bill import bill_of_materials, locked_packages
from pulumi_holdfast.cli.release.build import check_same, packed, project_version, release_notes, sums_of
from pulumi_holdfast.ladder.errors import ConfigError

PROJECT = Path(__file__).parents[3]
LOCK = (PROJECT / "infra/requirements.txt").read_text("utf-8")
TIME = datetime(2026, 11, 23, tzinfo=UTC)
VERSION = project_version((PROJECT / "pyproject.toml").read_text("utf-8"))


def test_the_policy_pack_has_the_version_of_the_project() -> None:
    pack = yaml.safe_load((PROJECT / "policies/PulumiPolicy.yaml").read_text("utf-8"))
    assert pack["version"] == VERSION, "the engine reads it there, and a release has one version"


def test_nothing_uploads_a_package_whose_name_belongs_to_another_project() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "Private :: Do Not Upload" in project["classifiers"], "an index refuses it"
    workflows = "".join(file.read_text("utf-8") for file in (PROJECT / ".github").rglob("*.yaml"))
    assert re.findall(r"(?i)twine|pypi|uv publish", workflows) == [], "a release is on GitHub only"
    pages = [
        PROJECT / "README.md",
        *(PROJECT / "docs").glob("*.md"),
        *(PROJECT / "components/pulumi_holdfast/cli/template").rglob("*.tpl"),
    ]
    told = [
        line
        for page in pages
        for line in page.read_text("utf-8").splitlines()
        if "pip install holdfast" in line
    ]
    assert all("another project" in line for line in told), "that command installs a stranger's program"


def test_bill_lists_each_locked_package_with_its_hashes() -> None:
    # It is valid by CycloneDX' own schema, or there is none.
    bill = json.loads(bill_of_materials(VERSION, LOCK, TIME))
    told = {
        each["purl"]: {each["alg"] + ":" + each["content"] for each in each["hashes"]}
        for each in bill["components"]
    }
    pinned = {
        f"pkg:pypi/{name}@{version}" for name, version in re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", LOCK)
    }
    assert told.keys() == pinned, "every package that a program installs, and no other"
    listed = [content for hashes in told.values() for content in hashes]
    assert sorted(listed) == sorted(
        f"SHA-256:{content}" for content in re.findall(r"--hash=sha256:(\w+)", LOCK)
    ), "an installed file is found by its hash"
    assert bill["metadata"]["component"]["version"] == VERSION, "whose bill it is"


def test_bill_of_the_same_lock_is_the_same_text() -> None:
    assert bill_of_materials(VERSION, LOCK, TIME) == bill_of_materials(VERSION, LOCK, TIME), (
        "no number is drawn"
    )


def test_package_without_a_hash_is_refused() -> None:
    with pytest.raises(ConfigError, match=re.escape("attrs: got version 1.0 without a hash")):
        list(locked_packages("attrs==1.0\nyarl==2.0 --hash=sha256:" + "a" * 64))


def test_packed_folder_depends_on_names_and_content_only(tmp_path: Path) -> None:
    archives: list[bytes] = []
    for folder, order in (("one", "ab"), ("other/deeper", "ba")):
        root = tmp_path / folder
        root.mkdir(parents=True)
        for name in order:
            (root / name).write_text(name)
            (root / name).chmod(0o600 if folder == "one" else 0o755)
        archives.append(packed(root, "pack", 1_700_000_000))
    assert archives[0] == archives[1], "neither the folder nor the order of files gets into it"
    with tarfile.open(fileobj=io.BytesIO(archives[0])) as found:
        assert found.getnames() == ["pack/a", "pack/b"], "it unpacks into one folder"


@pytest.mark.parametrize("second", [{"a": b"1", "b": b"3"}, {"a": b"1"}, {"a": b"1", "b": b"2", "c": b""}])
def test_builds_that_differ_are_refused(second: Mapping[str, bytes]) -> None:
    first = {"a": b"1", "b": b"2"}
    check_same(first, dict(first))
    with pytest.raises(ConfigError, match="two builds with different bytes"):
        check_same(first, second)


def test_sums_are_those_of_sha256sum() -> None:
    expected = hashlib.sha256(b"1").hexdigest()
    assert sums_of({"b": b"1", "a": b"1"}) == f"{expected}  a\n{expected}  b\n", (
        "`sha256sum --check` reads them"
    )


CHANGELOG = """# Changelog

## Unreleased

### Added

- later

## 0.1.0

### Breaking changes

None.

## 0.0.9

- earlier
"""


def test_notes_of_a_release_are_its_chapter() -> None:
    assert release_notes("v0.1.0", "0.1.0", CHANGELOG) == "### Breaking changes\n\nNone.\n", (
        "what breaks comes first"
    )


@pytest.mark.parametrize(
    ("tag", "version", "told"),
    [
        ("v0.1.1", "0.1.0", "Change the version in pyproject.toml"),
        ("v0.2.0", "0.2.0", "Rename `## Unreleased`"),
    ],
    ids=["another version", "no chapter"],
)
def test_tag_that_is_no_release_is_refused(tag: str, version: str, told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        release_notes(tag, version, CHANGELOG)
