"""Every mutation of `make mutants` applies to the sources as they are, and names tests that are there."""

from tests.soak.mutants.runner import CHECKOUT, read_areas, read_lists, row_of


def test_each_named_test_exists() -> None:
    rows = [test for tests in read_areas().values() for test in tests]
    named = {
        test.partition("::")[::2]
        for test in (*rows, *(test for each in read_lists() for test in each.cluster))
    }
    assert not [path for path, _ in named if not (CHECKOUT / path).exists()]
    functions = [(path, name) for path, name in named if name]
    assert not [
        name
        for path, name in functions
        if f"def {name}(" not in (CHECKOUT / path).read_text(encoding="utf-8")
    ]


def test_each_mutation_has_a_row_and_each_row_a_mutation() -> None:
    areas = read_areas()
    assert {row_of(each.file, areas) for each in read_lists()} == set(areas)


def test_each_mutation_applies_to_the_sources() -> None:
    problems = [problem for each in read_lists() if (problem := each.problem(CHECKOUT))]
    assert not problems
