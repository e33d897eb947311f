"""The checks find of recorded pods and nodes what the scheduler's own filters answered (`python -m tests.soak filters`)."""

import json
from collections import Counter

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from tests.soak.filters.cases import FILTERS
from tests.soak.filters.recorded import RECORDED, recorded


@pytest.mark.parametrize("name", FILTERS)
def test_check_agrees_with_the_recorded_filter_of_the_scheduler(name: str) -> None:
    counted: Counter[bool] = Counter()
    for case, answer in recorded():
        found = case.verdicts()[name]
        assert found in {UNKNOWN, answer[name]}, (
            f"the scheduler answered otherwise: {json.dumps(case.question)}"
        )
        counted[answer[name]] += 1
    assert min(counted[True], counted[False]) > 10, (
        f"{RECORDED.name} has cases that pass and cases that do not"
    )
