import dataclasses
from dataclasses import dataclass
from datetime import timedelta

import pytest

from pulumi_holdfast.controller.jobs.state import JobState
from pulumi_holdfast.ladder.frozen import replace
from tests.support.builders.job_states import observed, running


@dataclass(frozen=True, kw_only=True, slots=True)
class WithSlots:
    number: int = 1


@dataclass(frozen=True, kw_only=True)
class Computed:
    number: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", self.number + 1)


def test_a_copy_equals_the_one_of_the_standard_library() -> None:
    state, observation = running(moves=3), observed(pods_placed=1)
    for before, changes in (
        (state, {}),
        (state, {"moves": 4, "waited": timedelta(seconds=3)}),
        (observation, {"pods_placed": 0, "dead_pods": ("a",)}),
    ):
        assert replace(before, **changes) == dataclasses.replace(before, **changes)
        assert hash(replace(state, moves=5)) == hash(dataclasses.replace(state, moves=5))


def test_a_copy_leaves_the_original_and_is_frozen_as_it() -> None:
    state = running(moves=3)
    copied: JobState = replace(state, moves=4)
    assert (state.moves, copied.moves) == (3, 4)
    assert replace(copied, moves=3) == state
    with pytest.raises(dataclasses.FrozenInstanceError):
        copied.moves = 5  # type: ignore[misc]  # what the test is about


def test_a_field_that_does_not_exist_is_rejected() -> None:
    with pytest.raises(TypeError, match="JobState has no field phases"):
        replace(running(), phases=1)


@pytest.mark.parametrize("unsuited", [WithSlots(), Computed()])
def test_a_class_whose_objects_cannot_be_copied_so_is_rejected(unsuited: object) -> None:
    with pytest.raises(TypeError):
        replace(unsuited, number=2)
