"""Every mutation of `make mutants` applies to the sources as they are."""

from tests.soak.mutants.runner import CHECKOUT, read_lists


def test_each_mutation_names_tests_that_exist() -> None:
    named = {test.partition("::")[0] for each in read_lists() for test in (*each.tests, *each.cluster)}
    assert not [test for test in named if not (CHECKOUT / test).exists()]


def test_each_mutation_applies_to_the_sources() -> None:
    problems = [problem for each in read_lists() if (problem := each.problem(CHECKOUT))]
    assert not problems
