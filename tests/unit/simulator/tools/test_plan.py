"""Chains that share packages go one after another, the others beside them."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.simulator.tools.catalog import CHAINS, TOOLS
from holdfast.simulator.tools.charts import CHARTS
from holdfast.simulator.tools.locate import State, Survey, chains

states = st.sampled_from(list(State))
surveys = st.builds(
    Survey,
    tools=st.fixed_dictionaries(dict.fromkeys(TOOLS, states)),
    charts=st.fixed_dictionaries(dict.fromkeys(CHARTS, states)),
)


@given(surveys)
def test_every_missing_piece_is_made_once_and_nothing_else(survey: Survey) -> None:
    planned = sorted(piece.title for chain in chains(survey, CHAINS) for piece in chain)
    assert planned == sorted(survey.missing), "the plan is what is missing, no more and no less"


@given(surveys)
def test_tools_that_share_packages_are_never_in_two_chains(survey: Survey) -> None:
    planned = chains(survey, CHAINS)
    modules = [{piece.module for piece in chain if piece in survey.tools} for chain in planned]
    for index, chain in enumerate(modules):
        beside = set[str]().union(*modules[:index], *modules[index + 1 :])
        assert not chain & beside, "side by side they would compile the same packages twice"


@given(surveys)
def test_no_chain_is_empty(survey: Survey) -> None:
    assert all(chains(survey, CHAINS)), "an empty chain would be a thread with nothing to do"
