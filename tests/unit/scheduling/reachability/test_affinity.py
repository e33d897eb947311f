import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import GPU_NODE, INSTANCE_TYPE, POOL
from holdfast.scheduling.reachability.affinity import Requirement, any_holds, keys_of, label_of, term_holds

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
    assert found is holds, "a requirement on an unknown label is UNKNOWN"


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
    assert any_holds(terms, LABELS) is holds, "a term without requirements matches no node"


@pytest.mark.parametrize(
    "key", [INSTANCE_TYPE, GPU_NODE, "topology.ebs.csi.aws.com/zone", "karpenter.k8s.aws/x"]
)
def test_undeclared_label_of_a_cloud_domain_is_unknown(key: str):
    assert label_of({}, key) is UNKNOWN, "a pool declaration does not list these labels"


@pytest.mark.parametrize("key", ["disk", POOL, "example.com/rack", "mykubernetes.io/rack"])
def test_undeclared_label_of_another_domain_is_absent(key: str):
    assert label_of({}, key) is None, "only the declaration can put it on a node"


def test_keys_are_listed_once_and_sorted():
    assert keys_of(((ZONED, FAST), (SLOW,))) == ("disk", "zone"), "each key of all terms"


@given(st.dictionaries(st.sampled_from(["disk", "rack"]), st.sampled_from(["fast", "slow", "7"])))
def test_operator_and_its_negation_never_agree(labels: dict[str, str]):
    for key in ("disk", "rack"):
        has, lacks, within, outside = (
            term_holds((Requirement(key=key, operator=operator, values=values),), labels)
            for operator, values in (
                ("Exists", ()), ("DoesNotExist", ()), ("In", ("fast",)), ("NotIn", ("fast",)),
            )
        )  # fmt: skip
        assert (has, within) == (not lacks, not outside), "a known label matches exactly one of them"
