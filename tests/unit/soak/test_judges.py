"""The judge of Azure's published types sees planted mistakes, and the simulator replaces what the provider replaces."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.simulator.clouds.catalogue import catalogue_of
from holdfast.simulator.pulumi.values import UNKNOWN
from tests.soak.judges.openapi import TYPES, api_version
from tests.soak.judges.planted import mistakes
from tests.support.published import Published

if TYPE_CHECKING:
    from collections.abc import Mapping

POOL_TYPE = "azure-native:containerservice:AgentPool"
POOL: Mapping[str, object] = {
    "resourceGroupName": "group",
    "resourceName": "cluster",
    "agentPoolName": "a100spot",
    "mode": "User",
    "vmSize": "Standard_NC24ads_A100_v4",
    "count": 0,
    "minCount": 0,
    "maxCount": 8,
    "enableAutoScaling": True,
    "osDiskSizeGB": 128,
    "scaleSetPriority": "Spot",
    "spotMaxPrice": 1.2,
    "upgradeSettings": {"drainTimeoutInMinutes": 30, "maxSurge": "1"},
    "availabilityZones": ["1", "2"],
}
#: The properties that only Azure refuses to change, and those that its API marks as set once.
SET_ONCE = {
    "azure-native:network:NatGateway": {"location", "zones"},
    "azure-native:network:PublicIPAddress": {"zones"},
    "azure-native:managedidentity:UserAssignedIdentity": {"location"},
}
#: In the cluster's own list of pools; no stack sets it, and paths into lists are not simulated.
NOT_SIMULATED = {"azure-native:containerservice:ManagedCluster": {"nodePublicIPTags"}}


def complaints(**changes: object) -> list[str]:
    return Published.of("azure-native").complaints(POOL_TYPE, {**POOL, **changes})


def test_a_valid_pool_has_no_complaint_also_where_ids_are_unknown() -> None:
    assert complaints() == [], "the published types allow it"
    assert complaints(vnetSubnetID=UNKNOWN, upgradeSettings=UNKNOWN) == [], (
        "unknown values cannot be wrong yet"
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"spotmaxprice": 1}, "no judge knows this field"),
        ({"mode": "Worker"}, "the published values are Gateway, System, User"),
        ({"agentPoolName": "a100-spot"}, "does not match"),
        ({"osDiskSizeGB": 4096}, "more than 2048"),
        ({"count": "two"}, "not of the kind number"),
        ({"upgradeSettings": {"drain": 30}}, "AgentPool.upgradeSettings.drain: no judge knows this field"),
    ],
)
def test_a_wrong_field_is_refused_with_what_is_published(changes: dict[str, object], reason: str) -> None:
    (complaint,) = complaints(**changes)
    assert reason in complaint, "the author learns what is allowed"


def test_an_unknown_type_is_refused_with_where_to_read_how_to_record_it() -> None:
    (complaint,) = Published.of("azure-native").complaints("azure-native:web:WebApp", {})
    assert "record it as docs/judges.md says" in complaint, "a new type needs a judge"


def test_planted_mistakes_are_seen_where_their_rule_is_published() -> None:
    planted: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for mistake in mistakes(POOL):
        planted[mistake.kind] += 1
        seen[mistake.kind] += bool(Published.of("azure-native").complaints(POOL_TYPE, mistake.inputs))
    for kind in ("misspelled name", "wrong kind"):
        assert seen[kind] == planted[kind], f"every {kind} is seen"
    assert seen["wrong text"] >= 3, "values that are enumerations and names are seen"
    assert seen["wrong number"] >= 1, "published ranges are seen"


def test_recorded_types_are_of_the_api_versions_that_the_sdk_uses() -> None:
    recorded = {token: one["version"] for token, one in Published.of("azure-native").types.items()}
    assert recorded == {token: api_version(token) for token in TYPES}, (
        "an upgrade of pulumi-azure-native needs `python -m tests.soak record-types`"
    )


@pytest.mark.parametrize(
    "token", sorted({*Published.of("azure-native").replacing} & {*catalogue_of("azure-native").resources})
)
def test_the_simulator_replaces_a_resource_for_the_fields_that_the_provider_lists(token: str) -> None:
    rules = catalogue_of("azure-native").resources[token]
    simulated = {path.rpartition(".")[2] for path in rules.immutable} - {"resourceGroupName"}
    listed = {*Published.of("azure-native").replacing[token]} - NOT_SIMULATED.get(token, set())
    assert simulated == listed | SET_ONCE.get(token, set()), "a rehearsal shows what `up` does"


def test_shapes_that_are_referred_to_are_recorded() -> None:
    published = Published.of("azure-native")
    named: set[str] = set()

    def collect(field: Mapping[str, object]) -> None:
        if "shape" in field:
            named.add(str(field["shape"]))
        if "item" in field:
            collect(cast("Mapping[str, object]", field["item"]))

    for one in (*published.shapes.values(), *(each["fields"] for each in published.types.values())):
        for field in cast("Mapping[str, Mapping[str, object]]", one).values():
            collect(field)
    assert named == {*published.shapes}, "no nested object is without a judge, and none is left over"
