"""Machines by family and size."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.machines import is_sold_in, machine_catalogue, regions, select_machines

CATALOGUE = machine_catalogue("aws")
FAMILIES = sorted({name.split(".")[0] for name in CATALOGUE})
SIZES = sorted({name.split(".")[1] for name in CATALOGUE})

some_families = st.lists(st.sampled_from(FAMILIES), max_size=6)
some_sizes = st.lists(st.sampled_from(SIZES), max_size=6)
a_region = st.sampled_from(sorted(regions("aws")))


def names(families: list[str], sizes: list[str], region: str = "us-east-1") -> list[str]:
    return [machine.name for machine in select_machines(families, sizes, CATALOGUE, region)]


def test_every_family_in_every_size_is_taken() -> None:
    assert names(["m7i", "m7a"], ["xlarge", "2xlarge"]) == [
        "m7i.xlarge",
        "m7i.2xlarge",
        "m7a.xlarge",
        "m7a.2xlarge",
    ], "in the order in which they are listed"


def test_a_size_that_a_family_does_not_have_is_left_out() -> None:
    assert names(["p4d", "p5"], ["24xlarge", "48xlarge"]) == ["p4d.24xlarge", "p5.48xlarge"], (
        "families come in sizes of their own"
    )


def test_a_type_that_the_region_does_not_sell_is_left_out() -> None:
    assert names(["p4d", "p4de"], ["24xlarge"], "eu-west-1") == ["p4d.24xlarge"], "Ireland has no p4de"


@given(some_families, some_sizes, a_region)
def test_a_selection_holds_each_type_that_was_asked_for_and_is_sold_once(
    families: list[str], sizes: list[str], region: str
) -> None:
    chosen = names(families, sizes, region)
    expected = {
        name
        for name in CATALOGUE
        if name.split(".")[0] in families and name.split(".")[1] in sizes and is_sold_in(name, region)
    }
    assert sorted(chosen) == sorted(expected), "no more, no fewer, none twice"
