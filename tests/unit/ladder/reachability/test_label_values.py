import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.reachability.affinity import OPERATORS, LabelValues

NONE: list[str] = []

WORDS = ["a", "b", "c", "1", "2", "3", "10"]
NUMBERS = ["0", "1", "2", "3", "10"]


@st.composite
def sets(draw: st.DrawFn) -> LabelValues:
    """What any operator allows."""
    operator = draw(st.sampled_from(OPERATORS))
    if operator in {"Gt", "Lt", "Gte", "Lte"}:
        return LabelValues.of(operator, [draw(st.sampled_from(NUMBERS))])
    if operator in {"Exists", "DoesNotExist"}:
        return LabelValues.of(operator)
    return LabelValues.of(operator, draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)))


@pytest.mark.parametrize(
    ("operator", "values", "allowed", "excluded"),
    [
        ("In", ["a", "b"], ["a", "b"], ["c", "1"]),
        ("NotIn", ["a"], ["b", "1"], ["a"]),
        ("Exists", [], WORDS, []),
        ("DoesNotExist", [], [], WORDS),
        ("Gt", ["2"], ["3", "10"], ["1", "2", "a"]),
        ("Gte", ["2"], ["2", "3", "10"], ["1", "a"]),
        ("Lt", ["2"], ["1"], ["2", "3", "10", "a"]),
        ("Lte", ["2"], ["1", "2"], ["3", "10", "a"]),
    ],
)
def test_operator_allows_its_values(
    operator: str, values: list[str], allowed: list[str], excluded: list[str]
) -> None:
    found = LabelValues.of(operator, values)
    assert [each for each in allowed + excluded if each in found] == allowed


@pytest.mark.parametrize(
    ("operator", "values"), [("Near", ["a"]), ("Gt", NONE), ("Gt", ["a"]), ("Lt", ["1", "2"])]
)
def test_requirement_that_karpenter_rejects_has_no_values(operator: str, values: list[str]) -> None:
    with pytest.raises(ValueError, match=r"not an operator|not one integer"):
        LabelValues.of(operator, values)


@given(one=sets(), other=sets(), value=st.sampled_from(WORDS))
def test_intersection_has_exactly_the_values_of_both(
    one: LabelValues, other: LabelValues, value: str
) -> None:
    assert (value in (one & other)) is (value in one and value in other)
    assert (one & other) == (other & one)


@given(one=sets(), other=sets())
def test_common_value_means_that_pods_and_pool_meet(one: LabelValues, other: LabelValues) -> None:
    if any(value in one and value in other for value in WORDS):
        assert one.meets(other)
    assert one.meets(other) is other.meets(one)


@pytest.mark.parametrize(
    ("pool", "pods", "meet"),
    [
        (("DoesNotExist", NONE), ("NotIn", ["a"]), True),
        (("NotIn", ["a"]), ("DoesNotExist", NONE), True),
        (("Exists", NONE), ("DoesNotExist", NONE), False),
        (("DoesNotExist", NONE), ("Exists", NONE), False),
        (("In", ["a"]), ("NotIn", ["a"]), False),
        (("Gt", ["3"]), ("Lt", ["4"]), False),
        (("Gt", ["3"]), ("Lt", ["5"]), True),
        (("Gt", ["3"]), ("In", ["a", "3"]), False),
    ],
)
def test_absent_label_satisfies_only_requirements_that_exclude(
    pool: tuple[str, list[str]], pods: tuple[str, list[str]], meet: bool
) -> None:
    assert LabelValues.of(*pool).meets(LabelValues.of(*pods)) is meet


def test_joint_of_contradictions_is_a_node_without_the_label() -> None:
    found = LabelValues.joint([LabelValues.of("In", ["a"]), LabelValues.of("NotIn", ["a"])])
    assert found.is_empty
    assert LabelValues.joint([LabelValues.of("In", ["a"])]).only == "a"
    assert LabelValues.joint([]).only is None
