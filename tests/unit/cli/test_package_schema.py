"""The schema of the package, against the sections it comes from and the file that the plugin serves."""

import json
from typing import cast

import pytest

from pulumi_holdfast.cli.package_schema import NAMESPACE, package_schema, rendered_package
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.package_plugin import SCHEMA
from pulumi_holdfast.training_clusters import COMPONENTS


def resource(name: str) -> Json:
    return mapping(mapping(package_schema()["resources"])[f"holdfast:index:{name}"])


def type_of(name: str) -> Json:
    return mapping(mapping(mapping(package_schema()["types"])[f"holdfast:index:{name}"])["properties"])


def references(value: JsonValue) -> set[str]:
    if isinstance(value, dict):
        own = {str(value["$ref"])} if "$ref" in value else set[str]()
        return own.union(*(references(each) for each in value.values()))
    return set[str]().union(*(references(each) for each in value)) if isinstance(value, list) else set()


def test_the_committed_schema_is_that_of_the_sections() -> None:
    assert SCHEMA.read_text("utf-8") == rendered_package(), "run `make schemas`"


def test_every_component_and_no_other_is_in_it() -> None:
    assert mapping(package_schema()["resources"]).keys() == COMPONENTS.keys()
    assert package_schema()["namespace"] == NAMESPACE


def test_every_reference_leads_to_a_type() -> None:
    schema = cast("Json", json.loads(rendered_package()))
    own = {
        each.removeprefix("#/types/")
        for each in references(cast("JsonValue", schema))
        if each.startswith("#")
    }
    assert own <= mapping(schema["types"]).keys()


def test_arguments_are_the_sections_without_the_cloud_and_what_the_provider_has() -> None:
    names = mapping(resource("EksTrainingCluster")["inputProperties"]).keys()
    assert {"pools", "network", "namespaces", "environment", "tokens"} <= names
    assert not {"cloud", "aws:region", "region"} & names
    assert resource("AksTrainingCluster")["requiredInputs"] == ["location", "cluster", "pools"]


@pytest.mark.parametrize(
    ("kind", "field", "takes"),
    [
        ("AwsNewNetwork", "vpcId", True),
        ("AwsNewNetwork", "privateSubnetIds", True),
        ("AwsNewNetwork", "cidr", False),
        ("AwsCluster", "admins", True),
        ("AwsPool", "instanceTypes", False),
        ("GcpNewNetwork", "subnetwork", True),
        ("AzureNewNetwork", "subnetId", True),
    ],
)
def test_a_field_is_plain_unless_an_output_may_come_in(kind: str, field: str, takes: bool) -> None:
    assert ("plain" not in mapping(type_of(kind)[field])) is takes


def test_what_holds_a_field_that_takes_an_output_is_not_plain() -> None:
    inputs = mapping(resource("EksTrainingCluster")["inputProperties"])
    assert "plain" not in mapping(inputs["network"])
    assert mapping(inputs["pools"])["plain"] is True


@pytest.mark.parametrize(
    ("kind", "field", "written"),
    [
        ("Shape", "cpu", ["number", "string"]),
        ("Shape", "memory", ["string"]),
        ("Quota", "storage", ["string"]),
        ("Tier", "procurementTimeout", ["string"]),
        ("GcpPool", "gracefulShutdownSeconds", ["integer"]),
        ("AwsPool", "maxNodes", ["integer"]),
    ],
)
def test_a_field_has_the_types_that_a_stack_file_writes(kind: str, field: str, written: list[str]) -> None:
    found = mapping(type_of(kind)[field])
    several = cast("list[Json]", found.get("oneOf", [found]))
    assert [each["type"] for each in several] == written
