"""What AKS calls a pool and a zone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.components.azure_names import LONGEST_NAME, agent_pool_name, zone_label
from holdfast.scheduling.machines import zones_of

pool_names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("pool", "name"),
    [("cpu", "cpu"), ("a100-spot", "a100spot"), ("h100-on-demand", "h100ondemand"), ("4x-a100", "p4xa100")],
)
def test_a_pool_is_recognised_by_its_name_in_the_portal(pool: str, name: str) -> None:
    assert agent_pool_name(pool) == name, "small letters and digits, a letter first"


def test_long_names_of_a_common_beginning_stay_two() -> None:
    names = {agent_pool_name(f"a100-80gb-spot-{zone}") for zone in ("east", "west")}
    assert len(names) == 2, "one would be made over the other"
    assert all(name.startswith("a10080gb") for name in names), "what it is can still be read"


@given(pool_names)
def test_aks_takes_every_name(pool: str) -> None:
    assert re.fullmatch(rf"[a-z][a-z0-9]{{0,{LONGEST_NAME - 1}}}", agent_pool_name(pool)), (
        "1 to 12 small letters and digits, a letter first"
    )


@given(pool_names)
def test_a_pool_keeps_its_name(pool: str) -> None:
    assert agent_pool_name(pool) == agent_pool_name(pool), "another name would be another pool"


def test_a_zone_is_labelled_by_its_location_and_number() -> None:
    labels = tuple(zone_label("westeurope", zone) for zone in ("1", "2", "3"))
    assert labels == zones_of("westeurope"), "as the machine table has them"
