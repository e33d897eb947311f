"""The policies page documents every policy and setting."""

import json
import re
from typing import cast

from pack import RULES
from pulumi_holdfast.ladder.json import Json
from tests.support.doc_pages import ROOT, DocPage

PAGE = DocPage.read("docs/policies.md")
NAMES = {rule.name for rule in RULES}


def cells(chapter: str, columns: int) -> list[list[str]]:
    """The rows of a chapter's table, without its head and what marks words up."""
    rows = [[cell.replace("`", "") for cell in row] for row in PAGE.rows(chapter)]
    return [row for row in rows if len(row) == columns][2:]


def test_the_table_of_rules_equals_the_pack() -> None:
    written = [
        [
            rule.name,
            rule.level.value,
            (rule.strict or rule.level).value,
            rule.group.value,
            rule.description.replace("`", ""),
            rule.fix.replace("`", ""),
            ", ".join(rule.settings),
        ]
        for rule in RULES
    ]
    assert cells("## Rules", 7) == written


def test_every_setting_is_listed_with_its_default() -> None:
    written = [
        [name, rule.name, json.dumps(setting.default), str(setting.schema["description"]).replace("`", "")]
        for rule in RULES
        for name, setting in rule.settings.items()
    ]
    assert cells("## Settings", 4) == written


def test_examples_of_configuration_name_rules_that_exist_and_settings_that_they_have() -> None:
    settings = {rule.name: {*rule.settings, "enforcementLevel"} for rule in RULES}
    shown = [
        cast("Json", json.loads(block)) for block in re.findall(r"```json\n(.*?)```", PAGE.text, re.DOTALL)
    ]
    file = ROOT / "examples/policies/policies.json"
    kept = cast("Json", json.loads(file.read_text("utf-8")))
    assert kept in shown
    for configuration in shown:
        assert configuration.keys() <= NAMES | {"all"}, f"{configuration.keys() - NAMES} are no policies"
        for name, given in configuration.items():
            if isinstance(given, dict):
                assert given.keys() <= settings[name], f"{name} has no such setting: {given}"


def test_requirements_are_the_projects_own_versions() -> None:
    pinned = re.findall(
        r"^(pulumi[\w-]*==\S+)$", (ROOT / "policies/requirements.in").read_text("utf-8"), re.MULTILINE
    )
    project = (ROOT / "requirements.lock").read_text("utf-8")
    locked = (ROOT / "policies/requirements.txt").read_text("utf-8")
    for pin in pinned:
        assert f"{pin} \\" in project, f"{pin}: rules are tested with the project's version"
        assert f"{pin} \\" in locked, f"{pin}: run `make lock`"
