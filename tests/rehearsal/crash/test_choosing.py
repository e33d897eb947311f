"""After which resources a run is killed."""

from hypothesis import given
from hypothesis import strategies as st

from rehearsal.crash import every, sample
from rehearsal.engine.checkpoint import Recorded
from tests.support.rehearsals import urn


def test_only_what_a_provider_made_is_worth_a_kill() -> None:
    made = Recorded(urn=urn("vpc"), id="vpc-1")
    component = Recorded(urn=urn("network", "holdfast:index:Network"), id="")
    provider = Recorded(urn=urn("default", "pulumi:providers:aws"), id="0000")
    only_read = Recorded(urn=urn("role"), id="role", external=True)
    assert every([component, provider, made, only_read]) == (made.urn,), (
        "nothing outside is made for the others"
    )


@given(st.lists(st.text(min_size=1), unique=True), st.integers(1, 20), st.integers())
def test_a_sample_is_the_same_for_the_same_seed_and_keeps_the_order(
    urns: list[str], size: int, seed: int
) -> None:
    chosen = sample(urns, size, seed)
    assert chosen == sample(urns, size, seed), "a failure could not be repeated"
    assert list(chosen) == [one for one in urns if one in chosen], (
        "the order tells what existed before the kill"
    )
    assert len(chosen) == min(size, len(urns)), "not as many as were asked for"


def test_another_seed_chooses_others() -> None:
    urns = [str(number) for number in range(100)]
    assert len({sample(urns, 3, seed) for seed in range(20)}) > 1, "the seed does nothing"
