import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import GPU_NODE, INSTANCE_TYPE, POOL
from pulumi_holdfast.ladder.reachability.affinity import (
    UNDECLARED,
    LabelFact,
    LabelValues,
    Requirement,
    any_holds,
    keys_of,
    label_of,
    term_holds,
)

LABELS = {"disk": "fast", "generation": "5", "zone": UNKNOWN, "word": "new"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "holds"),
    [
        ("disk", "In", ("slow", "fast"), True),
        ("disk", "In", ("slow",), False),
        ("rack", "In", ("7",), False),
        ("disk", "NotIn", ("fast",), False),
        ("rack", "NotIn", ("7",), True),
        ("disk", "Exists", (), True),
        ("rack", "Exists", (), False),
        ("disk", "DoesNotExist", (), False),
        ("rack", "DoesNotExist", (), True),
        ("generation", "Gt", ("4",), True),
        ("generation", "Gt", ("5",), False),
        ("generation", "Lt", ("6",), True),
        ("generation", "Lt", ("5",), False),
        ("word", "Gt", ("4",), False),
        ("generation", "Gt", ("old",), False),
        ("generation", "Gt", (), False),
        ("generation", "Gt", ("-1",), False),
        ("generation", "Lt", ("9223372036854775807",), True),
        ("generation", "Lt", ("9223372036854775808",), False),
        ("rack", "NotIn", ("a b",), False),
        ("rack", "Lt", ("6",), False),
        ("zone", "In", ("a",), UNKNOWN),
        ("zone", "DoesNotExist", (), UNKNOWN),
        (INSTANCE_TYPE, "In", ("p4d",), UNKNOWN),
        ("disk", "Near", ("fast",), UNKNOWN),
    ],
)
def test_requirement_matches_as_in_the_scheduler(
    key: str, operator: str, values: tuple[str, ...], holds: bool | Unknown
):
    found = term_holds((Requirement(key=key, operator=operator, values=values),), LABELS)
    assert found is holds


FAST = Requirement(key="disk", operator="In", values=("fast",))
SLOW = Requirement(key="disk", operator="In", values=("slow",))
ZONED = Requirement(key="zone", operator="Exists")


@pytest.mark.parametrize(
    ("terms", "holds"),
    [
        ((), True),
        (((FAST,),), True),
        (((SLOW,), (FAST,)), True),
        (((FAST, SLOW),), False),
        (((FAST, ZONED),), UNKNOWN),
        (((SLOW, ZONED),), False),
        (((SLOW,), (ZONED,)), UNKNOWN),
        (((),), False),
    ],
)
def test_one_matching_term_is_enough_and_a_term_needs_all_requirements(
    terms: tuple[tuple[Requirement, ...], ...], holds: bool | Unknown
):
    assert any_holds(terms, LABELS) is holds


@pytest.mark.parametrize(
    "key", [INSTANCE_TYPE, GPU_NODE, "topology.ebs.csi.aws.com/zone", "karpenter.k8s.aws/x"]
)
def test_undeclared_label_of_a_cloud_domain_is_unknown(key: str):
    assert label_of({}, key) is UNKNOWN


@pytest.mark.parametrize("key", ["disk", POOL, "example.com/rack", "mykubernetes.io/rack"])
def test_undeclared_label_of_another_domain_is_absent(key: str):
    assert label_of({}, key) is None


def test_keys_are_listed_once_and_sorted():
    assert keys_of(((ZONED, FAST), (SLOW,))) == ("disk", "zone")


OPEN = LabelValues(is_complement=True)
UP_TO_4 = LabelValues.of("Lte", ["4"])


@pytest.mark.parametrize(
    ("fact", "expressions", "holds", "reason"),
    [
        (UNDECLARED, (("NotIn", "3"),), True, "Karpenter sets a number of 63 bits"),
        (UNDECLARED, (("Lt", "5"),), False, "only NotIn and DoesNotExist are met by a label that nothing declares"),
        (UNDECLARED, (("Lt", "5"), ("NotIn", "3")), UNKNOWN, "Karpenter sets 0 to 4, and it may be 3"),
        (UNDECLARED, (("Lt", "1"), ("NotIn", "0")), False, "Karpenter sets 0, which the scheduler rejects"),
        (UNDECLARED, (("Lt", "5"), ("NotIn", "7")), False, "7 is beyond the bound, so nothing is left of NotIn"),
        (UNDECLARED, (("Gt", "5"), ("NotIn", "7")), True, "one number in 63 bits is rejected"),
        (UNDECLARED, (("Gt", "-5"), ("NotIn", "7")), False, "the scheduler reads no bound with a sign"),
        (OPEN, (("Lt", "0"),), False, "Karpenter finds no number from 0 to -1"),
        (UNDECLARED, (("DoesNotExist",),), True, "the nodes do not have it"),
        (UNDECLARED, (("In", "a"), ("In", "b")), False, "Karpenter takes a contradiction for absence, the scheduler does not"),
        (OPEN, (("NotIn", "3"),), True, "Karpenter sets a number of 63 bits"),
        (OPEN, (("Lt", "5"),), True, "Karpenter sets 0 to 4"),
        (OPEN, (("Lt", "5"), ("NotIn", "3")), UNKNOWN, "Karpenter sets 0 to 4, and it may be 3"),
        (OPEN, (("In", "3", "9"), ("Lt", "5")), True, "Karpenter sets 3"),
        (UP_TO_4, (("NotIn", "3"),), UNKNOWN, "Karpenter sets 0 to 4, and it may be 3"),
        (UP_TO_4, (("NotIn", "9"),), True, "Karpenter sets none above 4"),
        (UP_TO_4, (("NotIn", "a b"),), False, "the scheduler reads no value that no label has"),
    ],
)  # fmt: skip
def test_open_label_matches_if_each_value_that_karpenter_may_set_does(
    fact: LabelFact, expressions: tuple[tuple[str, ...], ...], holds: bool | Unknown, reason: str
) -> None:
    term = tuple(Requirement(key="rack", operator=each[0], values=each[1:]) for each in expressions)
    assert term_holds(term, {"rack": fact}) is holds, reason


@given(st.dictionaries(st.sampled_from(["disk", "rack"]), st.sampled_from(["fast", "slow", "7"])))
def test_operator_and_its_negation_never_agree(labels: dict[str, str]):
    for key in ("disk", "rack"):
        has, lacks, within, outside = (
            term_holds((Requirement(key=key, operator=operator, values=values),), labels)
            for operator, values in (
                ("Exists", ()), ("DoesNotExist", ()), ("In", ("fast",)), ("NotIn", ("fast",)),
            )
        )  # fmt: skip
        assert (has, within) == (not lacks, not outside)
