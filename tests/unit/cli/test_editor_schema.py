"""Editors complete and check stack files by schemas that come from the program's own model and reference."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Protocol, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pulumi_holdfast.cli.editor_schema import (
    DOCUMENTS,
    FALLBACK,
    FOLDER,
    PLATFORM,
    POLICY_TABLES,
    REFERENCE,
    rendered,
    stack_schema,
    with_policy_tables,
    with_tables,
)
from pulumi_holdfast.clouds import CLOUDS, cloud_of
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json, JsonValue
from tests.support.strategies import cloud_configs
from tests.support.strategies.any_json import any_json
from tests.support.strategies.damaged_stacks import damaged

STACKS = sorted(FOLDER.parent.glob("Pulumi.*.yaml"))
every_cloud = pytest.mark.parametrize("cloud", sorted(CLOUDS))


class Judged(Protocol):
    @property
    def message(self) -> str: ...


class Judge(Protocol):
    def iter_errors(self, instance: object) -> Iterable[Judged]: ...


@cache
def judge(cloud: str) -> Judge:
    return cast("Judge", Draft202012Validator(stack_schema(cloud)))


def schema_accepts(cloud: str, document: JsonValue) -> bool:
    return not any(True for _ in judge(cloud).iter_errors({"config": {PLATFORM: document}}))


def stack_file(path: Path) -> tuple[str, Json, Json]:
    """The cloud of a stack file, its configuration, and the document in it."""
    config = cast("Json", json.loads(json.dumps(yaml.load(path.read_text("utf-8"), yaml.CSafeLoader))))[
        "config"
    ]
    document = cast("Json", cast("Json", config)[PLATFORM])
    return str(document["cloud"]), cast("Json", config), document


def program_accepts(cloud: str, config: Json, document: JsonValue) -> bool:
    try:
        found, read = cloud_of(document)
        found.read(read, {key: cast("str | None", config.get(key)) for key in CLOUDS[cloud].settings})
    except ConfigError:
        return False
    return True


@every_cloud
def test_schema_is_the_one_of_the_model(cloud: str) -> None:
    committed = (FOLDER / f"{cloud}.json").read_text("utf-8")
    assert committed == rendered(cloud)
    assert DOCUMENTS.keys() == CLOUDS.keys()


@every_cloud
def test_schema_is_valid_by_the_published_metaschema(cloud: str) -> None:
    Draft202012Validator.check_schema(json.loads(rendered(cloud)))


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.stem)
def test_stack_file_names_its_schema_and_agrees_with_it(path: Path) -> None:
    cloud, config, _ = stack_file(path)
    first = path.read_text("utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema=schema/{cloud}.json"
    assert (path.parent / first.partition("=")[2]).is_file()
    problems = [problem.message for problem in judge(cloud).iter_errors({"config": config})]
    assert not problems


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "wrong",
    [
        {"pool": []},
        {"protected": "yes"},
        {"namespaces": {"name": "vision"}},
        {"fallback": {"monitoring": {"dashboard": "on"}}},
        {"pools": [{"name": "cpu", "capacity": "preemptible", "maxNodes": 1}]},
        {"cloud": "ibm"},
    ],
    ids=["unknown field", "text for a boolean", "mapping for a list", "deep", "enum", "cloud"],
)
def test_what_the_schema_refuses_the_program_refuses(path: Path, wrong: Json) -> None:
    cloud, config, document = stack_file(path)
    assert program_accepts(cloud, config, document)
    assert not schema_accepts(cloud, {**document, **wrong})
    assert not program_accepts(cloud, config, {**document, **wrong})


@given(data=st.data())
def test_schema_refuses_nothing_that_the_program_accepts(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(STACKS))
    cloud, config, document = stack_file(path)
    changed = cast("JsonValue", data.draw(damaged(document, any_json("pools", "name", "cidrs", "enforced"))))
    if not schema_accepts(cloud, changed):
        assert not program_accepts(cloud, config, changed)


@pytest.mark.parametrize(
    ("cloud", "drawn"),
    [("aws", cloud_configs.aws()), ("azure", cloud_configs.azure()), ("gcp", cloud_configs.gcp())],
)
@given(data=st.data())
def test_valid_configurations_agree_with_the_schema(
    cloud: str, drawn: st.SearchStrategy[tuple[str, Json]], data: st.DataObject
) -> None:
    _, document = data.draw(drawn)
    assert schema_accepts(cloud, document)


def test_tables_of_the_reference_are_those_of_the_model() -> None:
    page = REFERENCE.read_text("utf-8")
    assert page == with_tables(page), "run `make schemas`"
    page = FALLBACK.read_text("utf-8")
    assert page == with_policy_tables(page), "run `make schemas`"
    assert page.count("<!-- fields of ") == len(POLICY_TABLES)


@every_cloud
def test_every_field_has_a_row_or_a_place_in_one(cloud: str) -> None:
    page = REFERENCE.read_text("utf-8")
    rows = "\n".join(line for line in page.splitlines() if line.startswith("| `"))
    headings = {line.strip("#` ") for line in page.splitlines() if line.startswith("#")}
    definitions = cast("dict[str, Json]", stack_schema(cloud)["$defs"])
    fields = {name for each in definitions.values() for name in cast("Json", each.get("properties", {}))}
    missing = {name for name in fields - headings if f"`{name}`" not in rows and f".{name}`" not in rows}
    assert missing <= {"ladder", "shapes", "maintenance"}


def test_text_about_a_field_reads_without_the_page() -> None:
    definitions = cast("dict[str, Json]", stack_schema("aws")["$defs"])
    fields = cast("dict[str, Json]", definitions["FallbackSection"]["properties"])
    assert fields["restartCost"]["description"] == (
        "the longest time from the loss of a job's machines until it has its earlier progress again, where capacity is "
        "available, `15m` by default; jobs with a deadline of their own keep enough time for it"
    )
    assert "](" not in rendered("azure")
