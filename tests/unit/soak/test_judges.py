"""Types are recorded as published, planted mistakes are seen, and Azure is judged by its SDK where none is recorded."""

import json
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.simulator.clouds.catalogue import Rules
from holdfast.simulator.pulumi.values import UNKNOWN
from tests.soak.judges import command, openapi
from tests.soak.judges.planted import mistakes
from tests.support.published import Published

ORCHARD_TYPE = "farm:trees:Orchard"
ORCHARD: Mapping[str, object] = {
    "name": "apples",
    "kind": "Fruit",
    "rows": 12,
    "price": 1.5,
    "watered": True,
    "fields": ["north", "south"],
    "harvest": {"month": "May", "pickers": 4},
}
#: A made-up recording with one rule of each kind.
FARM = Published(
    source="made up",
    replacing={ORCHARD_TYPE: ["kind", "soil"]},
    types={
        ORCHARD_TYPE: {
            "version": "2026-01-01",
            "fields": {
                "name": {"kind": "string", "pattern": "^[a-z]{1,8}$", "required": True},
                "kind": {"kind": "string", "values": ["Fruit", "Nut"]},
                "rows": {"kind": "number", "least": 0, "most": 100},
                "price": {"kind": "number"},
                "watered": {"kind": "bool"},
                "fields": {"kind": "list", "item": {"kind": "string", "shortest": 2, "longest": 10}},
                "harvest": {"kind": "object", "shape": "trees/Harvest"},
            },
        }
    },
    shapes={
        "trees/Harvest": {
            "month": {"kind": "string", "values": ["May", "June"]},
            "pickers": {"kind": "number", "least": 1},
        }
    },
)
GROUP_TYPE = "azure-native:resources:ResourceGroup"
#: Types in the form in which Azure's are generated: they refer to each other by number.
BOTTOM: list[Mapping[str, object]] = [
    {"$type": "StringType", "minLength": 1, "pattern": "^g"},
    {"$type": "StringLiteralType", "value": "east"},
    {"$type": "StringType"},
    {"$type": "UnionType", "elements": [{"$ref": "#/1"}, {"$ref": "#/2"}]},
    {
        "$type": "ObjectType",
        "properties": {
            "name": {"type": {"$ref": "#/0"}, "flags": 1},
            "location": {"type": {"$ref": "#/3"}, "flags": 1},
            "managedBy": {"type": {"$ref": "#/2"}, "flags": 2},
            "tags": {"type": {"$ref": "#/5"}, "flags": 0},
        },
    },
    {"$type": "ObjectType", "properties": {}, "additionalProperties": {"$ref": "#/2"}},
]


def complaints(**changes: object) -> list[str]:
    return FARM.complaints(ORCHARD_TYPE, {**ORCHARD, **changes})


def test_a_valid_resource_has_no_complaint_also_where_values_are_unknown() -> None:
    assert complaints() == [], "the published types allow it"
    assert complaints(name=UNKNOWN, harvest=UNKNOWN) == [], "unknown values cannot be wrong yet"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"Rows": 1}, "no judge knows this field"),
        ({"kind": "Vegetable"}, "the published values are Fruit, Nut"),
        ({"name": "Apples"}, "does not match"),
        ({"name": None}, "name is required"),
        ({"rows": 101}, "more than 100"),
        ({"rows": "two"}, "not of the kind number"),
        ({"fields": ["n"]}, "fields[0] is 'n', less than 2"),
        ({"harvest": {"week": 30}}, "Orchard.harvest.week: no judge knows this field"),
    ],
)
def test_a_wrong_field_is_refused_with_what_is_published(changes: dict[str, object], reason: str) -> None:
    (complaint,) = complaints(**changes)
    assert reason in complaint, "the author learns what is allowed"


def test_an_unknown_type_is_refused_with_where_to_read_how_to_record_it() -> None:
    (complaint,) = FARM.complaints("farm:trees:Hedge", {})
    assert "record it as docs/judges.md says" in complaint, "a new type needs a judge"


def test_planted_mistakes_are_seen_where_their_rule_is_published() -> None:
    planted: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for mistake in mistakes(ORCHARD):
        planted[mistake.kind] += 1
        seen[mistake.kind] += bool(FARM.complaints(ORCHARD_TYPE, mistake.inputs))
    for kind in ("misspelled name", "wrong kind"):
        assert seen[kind] == planted[kind], f"every {kind} is seen"
    assert seen["wrong text"] == 3, "name, kind and month have rules"
    assert seen["wrong number"] == 2, "rows and pickers have a least value, price has none"


def test_a_field_that_only_one_side_replaces_is_a_complaint() -> None:
    simulated = {ORCHARD_TYPE: Rules(immutable=frozenset({"resourceGroupName", "kind", "harvest.month"}))}
    assert openapi.replaced_otherwise(FARM, simulated) == [
        f"{ORCHARD_TYPE} month: only the simulator replaces the resource",
        f"{ORCHARD_TYPE} soil: only the provider replaces the resource",
    ], "a rehearsal shows what `up` does"


def test_a_recording_of_another_api_version_is_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openapi, "TYPES", {ORCHARD_TYPE: ("Farm/orchards", "name")})
    used = {ORCHARD_TYPE: "2026-01-01"}
    monkeypatch.setattr(openapi, "api_version", used.__getitem__)
    assert openapi.outdated(FARM) == [], "the SDK uses the recorded version"
    used[ORCHARD_TYPE] = "2027-01-01"
    (complaint,) = openapi.outdated(FARM)
    assert "recorded is 2026-01-01, the SDK uses 2027-01-01" in complaint, (
        "an upgrade needs another recording"
    )


def test_types_and_replacements_are_recorded_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, version = openapi.TYPES[GROUP_TYPE][0], openapi.api_version(GROUP_TYPE)
    checkout = tmp_path / "types"
    folder = checkout / f"generated/resources/microsoft.resources/{version}"
    folder.mkdir(parents=True)
    resource = {"$type": "ResourceType", "name": f"{kind}@{version}", "body": {"$ref": "#/4"}}
    (folder / "types.json").write_text(json.dumps([*BOTTOM, resource]), encoding="utf-8")
    git = ["git", "-C", str(checkout), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "types"]):
        subprocess.run([*git, *arguments], check=True)
    table = tmp_path / "replacement.go"
    table.write_text(
        "var forceNewMap = map[string]x{\n"
        '\t"Resources": {\n\t\t"ResourceGroup": codegen.NewStringSet("location"), // "tags"\n\t},\n}\n'
        'var noForceNewMap = map[string]x{\n\t"Resources": {\n\t},\n}\n',
        encoding="utf-8",
    )
    monkeypatch.setattr(openapi, "TYPES", {GROUP_TYPE: openapi.TYPES[GROUP_TYPE]})
    monkeypatch.setattr(openapi, "AZURE", tmp_path / "judges/azure-native.json")
    openapi.record(checkout, table)
    found = Published.read(tmp_path / "judges/azure-native.json")
    assert found.replacing == {GROUP_TYPE: ["location"]}, "comments are no entries"
    assert found.types[GROUP_TYPE] == {
        "type": kind,
        "version": version,
        "fields": {
            "location": {"kind": "string", "values": ["east"]},
            "resourceGroupName": {"kind": "string", "shortest": 1, "pattern": "^g"},
            "tags": {"kind": "map"},
        },
    }, "what only Azure sets is left out, and what the provider fills in is not required"
    assert openapi.outdated(found) == [], "it is recorded for the version that the SDK uses"


def test_azure_without_a_recording_is_judged_by_its_sdk_and_the_summary_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "AZURE", tmp_path / "azure-native.json")
    monkeypatch.setattr(command, "_CLOUDS", ("azure-native",))
    command.judges(seed=6, count=1)
    lines = capsys.readouterr().out.splitlines()
    (sentence,) = [line for line in lines if "record-types CHECKOUT REPLACEMENTS" in line]
    assert "Azure is judged by the classes of the SDK only" in sentence, (
        "the summary names what did not judge"
    )
