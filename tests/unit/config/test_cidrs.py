"""The address plan of a VPC."""

from ipaddress import IPv4Network
from itertools import combinations
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.config.cidrs import (
    FEWEST_ZONES,
    LARGEST_PREFIX,
    MOST_ZONES,
    SMALLEST_PREFIX,
    cidr_problems,
    plan_subnets,
)

FIELD: Final = "holdfast:platform.network.cidr"
PRIVATE: Final = [
    IPv4Network(cidr) for cidr in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
]


@st.composite
def vpc_cidrs(draw: st.DrawFn) -> str:
    """A valid range of a VPC."""
    private = draw(st.sampled_from(PRIVATE))
    prefix = draw(st.integers(LARGEST_PREFIX, SMALLEST_PREFIX))
    step = 2 ** (32 - prefix)
    at = draw(st.integers(0, private.num_addresses // step - 1))
    return str(IPv4Network((int(private.network_address) + at * step, prefix)))


zones = st.integers(FEWEST_ZONES, MOST_ZONES)


@given(vpc_cidrs(), zones)
def test_each_zone_has_one_subnet_of_each_kind_of_a_valid_size_in_the_vpc(cidr: str, count: int) -> None:
    plan = plan_subnets(cidr, count)
    subnets = [IPv4Network(subnet) for subnet in (*plan.private, *plan.public)]
    assert all(subnet.subnet_of(IPv4Network(cidr)) for subnet in subnets)
    assert not any(one.overlaps(other) for one, other in combinations(subnets, 2))
    assert len(plan.private) == len(plan.public) == count
    assert all(16 <= IPv4Network(subnet).prefixlen <= 28 for subnet in (*plan.private, *plan.public))
    for subnet in plan.private:
        assert IPv4Network(subnet).num_addresses * 8 == IPv4Network(cidr).num_addresses
    assert list(cidr_problems(cidr, FIELD)) == []


@given(vpc_cidrs(), zones, zones)
def test_an_appended_zone_moves_no_other_subnet(cidr: str, one: int, other: int) -> None:
    fewer, more = plan_subnets(cidr, min(one, other)), plan_subnets(cidr, max(one, other))
    assert more.private[: len(fewer.private)] == fewer.private
    assert more.public[: len(fewer.public)] == fewer.public


def test_the_default_range_gives_each_zone_8192_addresses() -> None:
    plan = plan_subnets("10.40.0.0/16", 3)
    assert plan.private == ("10.40.0.0/19", "10.40.32.0/19", "10.40.64.0/19")
    assert plan.public == ("10.40.224.0/22", "10.40.228.0/22", "10.40.232.0/22")


@pytest.mark.parametrize(
    ("cidr", "count"), [("10.0.0.0/8", 3), ("10.0.0.0/24", 3), ("10.0.0.0/16", 1), ("10.0.0.0/16", 7)]
)
def test_an_invalid_range_is_not_divided(cidr: str, count: int) -> None:
    with pytest.raises(ValueError, match=f"{cidr} cannot be divided among {count} zones"):
        plan_subnets(cidr, count)


@pytest.mark.parametrize(
    ("cidr", "fix"),
    [
        ("10.40.0.0", 'Write "10.40.0.0/16".'),
        ("10.40.0.0/255.255.0.0", 'Write "10.40.0.0/16".'),
        ("10.40.1.7/16", 'Write "10.40.0.0/16".'),
        ("10.0.0.0/8", 'Write "10.0.0.0/16".'),
        ("10.40.0.0/24", 'Write "10.40.0.0/22".'),
        ("8.8.0.0/16", 'Write, for example, "10.40.0.0/16".'),
        ("0.0.0.0/0", 'Write, for example, "10.40.0.0/16".'),
        ("fd00::/56", 'Write, for example, "10.40.0.0/16".'),
        ("ten", 'Write, for example, "10.40.0.0/16".'),
        ("10.40.0.0/33", 'Write, for example, "10.40.0.0/16".'),
        ("", 'Write, for example, "10.40.0.0/16".'),
    ],
)
def test_an_invalid_range_is_rejected_with_a_valid_one(cidr: str, fix: str) -> None:
    (problem,) = cidr_problems(cidr, FIELD)
    assert problem.field == FIELD
    assert f'"{cidr}"' in problem.value
    assert problem.fix == fix


def test_an_overlapping_range_is_rejected_with_the_other_and_a_free_one() -> None:
    taken = {"the cluster's services": "10.40.0.0/16", "the office": "10.41.0.0/16"}
    (problem,) = cidr_problems("10.40.128.0/18", FIELD, taken=taken)
    assert problem.value == '"10.40.128.0/18", which overlaps the cluster\'s services (10.40.0.0/16)'
    assert problem.fix == 'Write, for example, "10.42.0.0/16".', "the example itself must not overlap"


@given(vpc_cidrs(), vpc_cidrs())
def test_an_overlap_is_symmetric(one: str, other: str) -> None:
    found = [
        bool(list(cidr_problems(mine, FIELD, taken={"the other": yours})))
        for mine, yours in ((one, other), (other, one))
    ]
    expected = IPv4Network(one).overlaps(IPv4Network(other))
    assert found == [expected, expected]


@given(st.text(max_size=20))
def test_any_text_gives_a_problem_or_a_valid_range(text: str) -> None:
    for problem in cidr_problems(text, FIELD):
        assert problem.fix.startswith("Write")
