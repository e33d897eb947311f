"""In which order pools are tried."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.pools import weights
from tests.support.builders.configurations import pool


def test_the_default_pool_comes_first_wherever_it_is_listed() -> None:
    listed = [pool("a100-spot"), pool("cpu", is_default=True), pool("h100-spot")]
    assert weights(listed) == {"cpu": 100, "a100-spot": 99, "h100-spot": 98}, (
        "pods that ask for nothing go to the default pool; the others are tried as they are listed"
    )


@given(st.integers(min_value=1, max_value=300))
def test_every_weight_is_one_that_karpenter_accepts(count: int) -> None:
    listed = [pool("cpu", is_default=True), *(pool(f"spot-{number}") for number in range(count))]
    found = [weights(listed)[each.name] for each in listed]
    assert found == sorted(found, reverse=True), "a pool never outranks one that is listed before it"
    assert all(1 <= weight <= 100 for weight in found), "the API server refuses any other"
    assert found.count(100) == 1, "only the default pool is tried before all the others"
