"""The seeds of soak runs."""

import pytest

from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.soak.seeds import seed_of


def test_a_seed_comes_from_the_option_the_variable_or_a_draw() -> None:
    assert seed_of(7, "8") == 7
    assert seed_of(None, "8") == 8
    assert 0 <= seed_of(None, None) < 1_000_000
    with pytest.raises(RehearsalError, match="HOLDFAST_SEED is 'x'"):
        seed_of(None, "x")
