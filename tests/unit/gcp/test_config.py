"""The meaning of a valid GCP configuration."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.config.fields import Weekday
from pulumi_holdfast.gcp.config.sections import (
    Channel,
    GcpExistingNetwork,
    GcpNewNetwork,
    GcpPlatform,
    MaintenanceWindow,
    Recovery,
    Upgrades,
)
from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.stack_program import load_platform
from tests.support.builders.configurations import (
    GCP_PROJECT,
    GCP_REGION,
    Document,
    entry,
    gcp_document,
    gcp_platform,
    gcp_problems,
    new_cluster,
    read_gcp,
    section,
)
from tests.support.invalid_configs.gcp import BROUGHT
from tests.support.invalid_configs.mistakes import changed

ROOT = Path(__file__).parents[3]


def test_one_pool_and_access_are_enough() -> None:
    bare: Document = {
        "cloud": "gcp",
        "cluster": {"access": {"authorizedNetworks": ["10.0.0.0/8"]}},
        "pools": [
            {
                "name": "cpu",
                "capacity": "on-demand",
                "machineType": "n2-standard-4",
                "maxNodes": 2,
                "default": True,
            }
        ],
    }
    platform = read_gcp(bare)
    assert platform.protected, "what is forgotten must not be what can be destroyed"
    assert platform.network == GcpNewNetwork()
    assert platform.location == GCP_REGION
    assert new_cluster(platform.cluster).channel is Channel.REGULAR
    assert platform.checkpoints.recovery is Recovery.SOFT_DELETE


def test_project_region_and_location_come_from_the_settings_and_the_document() -> None:
    platform = gcp_platform(lambda d: section(d, "cluster").update(location="us-central1-b"))
    assert (platform.project, platform.region) == (GCP_PROJECT, GCP_REGION)
    assert platform.location == "us-central1-b"
    network = gcp_platform(lambda d: d.update(network=BROUGHT)).network
    assert isinstance(network, GcpExistingNetwork)


def test_a_pool_has_the_gpus_of_its_machine_or_those_that_are_attached_to_it() -> None:
    attached: Document = {"type": "nvidia-tesla-t4", "count": 2}
    on_n1 = changed(".pools[1]", machineType="n1-standard-8", accelerator=attached)
    own = gcp_platform().pools[2]
    other = gcp_platform(lambda d: (d.pop("namespaces"), on_n1(d))).pools[1]
    for pool, gpus in ((own, (8, "nvidia-tesla-a100")), (other, (2, "nvidia-tesla-t4"))):
        machine = pool.machine()
        assert machine is not None
        assert (machine.gpus, machine.accelerator) == gpus
        assert pool.as_pool().has_gpus


@pytest.mark.parametrize(("given_seconds", "seconds"), [(None, 30), (0, 0), (30, 30), (120, 120)])
def test_graceful_shutdown_is_as_configured_or_30_seconds(given_seconds: int | None, seconds: int) -> None:
    def change(document: Document) -> None:
        if given_seconds is not None:
            entry(document, "pools", 1).update(gracefulShutdownSeconds=given_seconds)

    assert gcp_platform(change).pools[1].shutdown_seconds == seconds


def test_upgrades_are_surge_upgrades_by_default() -> None:
    platform = gcp_platform(lambda d: entry(d, "pools", 0).update(upgrades="blue-green"))
    assert [pool.upgrades for pool in platform.pools[:2]] == [Upgrades.BLUE_GREEN, Upgrades.SURGE]


def test_pools_of_a_class_stay_in_their_order() -> None:
    def change(document: Document) -> None:
        entry(document, "pools", 2).update(computeClass="spot-gpus")
        entry(document, "pools", 3).update(computeClass="a100")
        document["pools"] = [
            *cast("list[JsonValue]", document["pools"]),
            {
                "name": "l4-spot",
                "capacity": "spot",
                "machineType": "g2-standard-96",
                "maxNodes": 2,
                "computeClass": "spot-gpus",
            },
        ]

    classes = gcp_platform(change).classes()
    assert {name: [pool.name for pool in pools] for name, pools in classes.items()} == {
        "spot-gpus": ["a100-spot", "l4-spot"],
        "a100": ["a100"],
    }


@pytest.mark.parametrize("text", ["2026-12-01", "2026-12-01T00:00:00Z", "2026-12-01T00:00:00+00:00"])
def test_a_date_is_the_same_however_yaml_parses_it(text: str) -> None:
    platform = gcp_platform(
        lambda d: section(d, "cluster").update(maintenance={"exclusions": [{"start": text}]})
    )
    (exclusion,) = new_cluster(platform.cluster).maintenance.exclusions
    assert exclusion.start == "2026-12-01", "or each update would change it"


def test_a_maintenance_window_becomes_an_rfc_5545_rule() -> None:
    window = MaintenanceWindow(days=(Weekday.SUNDAY, Weekday.WEDNESDAY), start="22:30", hours=6)
    assert window.recurrence == "FREQ=WEEKLY;BYDAY=WE,SU"
    assert window.first == ("2026-01-07T22:30:00Z", "2026-01-08T04:30:00Z")


@given(
    st.sets(st.sampled_from(list(Weekday)), min_size=1).map(tuple),
    st.integers(0, 23),
    st.integers(0, 59),
    st.integers(4, 24),
)
def test_the_first_window_falls_on_one_of_its_days(
    days: tuple[Weekday, ...], hour: int, minute: int, hours: int
) -> None:
    window = MaintenanceWindow(days=days, start=f"{hour:02}:{minute:02}", hours=hours)
    start, end = (datetime.fromisoformat(moment) for moment in window.first)
    assert list(Weekday)[start.weekday()] in days
    assert end - start == timedelta(hours=hours)


@given(st.sets(st.sampled_from(list(Weekday)), min_size=1), st.integers(4, 24))
@settings(deadline=None)
def test_a_valid_window_has_48_hours_in_any_32_days(days: set[Weekday], hours: int) -> None:
    document = gcp_document(
        lambda d: section(d, "cluster").update(
            maintenance={"window": {"days": [day.value for day in days], "hours": hours}}
        )
    )
    numbers = {day.number for day in days}
    fewest = min(sum(hours for day in range(first, first + 32) if day % 7 in numbers) for first in range(7))
    refused = any("window" in problem.field for problem in gcp_problems(document))
    assert refused or fewest >= 48


def tracked(stack: str) -> GcpPlatform:
    return cast("GcpPlatform", load_platform(ROOT / f"stacks/Pulumi.{stack}.yaml"))


def test_the_production_stack_has_nodes_in_several_zones() -> None:
    assert len(new_cluster(tracked("gcp-prod").cluster).zones or ()) > 1
