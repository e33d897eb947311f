"""Resources are judged by what is published, planted mistakes are seen, and replacements are compared."""

from collections.abc import Mapping

import pytest

from pulumi_holdfast.rehearsal.clouds.catalogue import Rules
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN
from tests.soak.judges.replacing import replaced_otherwise
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
    types={
        ORCHARD_TYPE: {
            "fields": {
                "name": {"kind": "string", "pattern": "^[a-z]{1,8}$", "required": True},
                "kind": {"kind": "string", "values": ["Fruit", "Nut"]},
                "rows": {"kind": "number", "least": 0, "most": 100},
                "price": {"kind": "number"},
                "watered": {"kind": "bool"},
                "fields": {"kind": "list", "item": {"kind": "string", "shortest": 2, "longest": 10}},
                "harvest": {"kind": "object", "shape": "trees/Harvest"},
            }
        }
    },
    shapes={
        "trees/Harvest": {
            "month": {"kind": "string", "values": ["May", "June"]},
            "pickers": {"kind": "number", "least": 1},
        }
    },
)
#: The form in which pulumi-azure-native lists what replaces a resource.
REPLACEMENTS = """var forceNewMap = map[string]x{
\t"Resources": {
\t\t"ResourceGroup": codegen.NewStringSet("location", "soil"), // "tags"
\t},
}
var noForceNewMap = map[string]x{
\t"Resources": {
\t},
}
"""


def complaints(**changes: object) -> list[str]:
    return FARM.complaints(ORCHARD_TYPE, {**ORCHARD, **changes})


def test_a_valid_resource_has_no_complaint_also_where_values_are_unknown() -> None:
    assert complaints() == []
    assert complaints(name=UNKNOWN, harvest=UNKNOWN) == []


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
    assert reason in complaint


def test_an_unknown_type_is_refused_with_where_to_read_how_to_record_it() -> None:
    (complaint,) = FARM.complaints("farm:trees:Hedge", {})
    assert "record it as docs/judges.md says" in complaint


def test_a_field_that_only_one_side_replaces_is_a_complaint() -> None:
    group = "azure-native:resources:ResourceGroup"
    simulated = {group: Rules(immutable=frozenset({"resourceGroupName", "location", "harvest.month"}))}
    assert replaced_otherwise(REPLACEMENTS, simulated) == [
        f"{group} month: only the simulator replaces the resource",
        f"{group} soil: only the provider replaces the resource",
    ]
