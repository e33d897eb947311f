"""A job's limit of cost from its annotations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.max_cost import max_cost_events, max_cost_of
from pulumi_holdfast.controller.state_machine.observation import MaxCost
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import AFTER_MAX_COST, MAX_COST


def job(most: str | None = "250", after: str | None = None) -> Json:
    written = {MAX_COST: most, AFTER_MAX_COST: after}
    return {
        "metadata": {"annotations": {name: value for name, value in written.items() if value is not None}}
    }


def test_a_limit_is_an_amount_and_what_follows_it() -> None:
    assert max_cost_of(job("99.50")) == MaxCost(amount=99.5), "by default the job waits on spot"
    assert max_cost_of(job("250", "give-up")) == MaxCost(amount=250, gives_up=True), "or is given up"
    assert (max_cost_of({}), max_cost_events({})) == (None, ()), "most jobs have none"
    assert max_cost_events(job("250", "wait")) == (), "both words are allowed"


@pytest.mark.parametrize(
    ("most", "after", "why"),
    [
        ("0", None, "allowed: a number above 0"),
        ("-5", None, "allowed: a number above 0"),
        ("1e9", None, "allowed: a number above 0"),
        ("$250", None, 'is "$250"'),
        (None, "wait", f"needs {MAX_COST}"),
        ("250", "stop", "allowed: wait or give-up"),
    ],
)
def test_annotations_that_cannot_be_read_are_said(most: str | None, after: str | None, why: str) -> None:
    (event,) = max_cost_events(job(most, after))
    assert why in event.message, "with what is allowed"
    assert event.is_standing, "once"


@given(st.text(max_size=12) | st.decimals(0, 10**10).map(str))
def test_every_text_is_a_limit_or_a_warning(text: str) -> None:
    assert (max_cost_of(job(text)) is None) == bool(max_cost_events(job(text))), (
        "never neither, and never both"
    )
