import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, GPU_NODE, INSTANCE_TYPE, POOL, ZONE
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.reachability.affinity import (
    OPERATORS,
    UNDECLARED,
    LabelFact,
    LabelValues,
    Requirement,
    any_holds,
    keys_of,
    label_of,
    term_holds,
)
from pulumi_holdfast.ladder.reachability.node_labels import Provisioner, machine_labels
from pulumi_holdfast.ladder.reachability.node_pool_requirements import (
    NodePoolRequirement,
    NodePoolRequirements,
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


AWS = "karpenter.k8s.aws/instance-"
TYPES = (
    "p4d.24xlarge",
    "p4de.24xlarge",
    "p5.48xlarge",
    "g5.12xlarge",
    "g5g.xlarge",
    "m7i.large",
    "m7g.large",
    "i4i.large",
    "m7i-flex.large",
)


NO_ZONES: set[str] = set()
NO_REQUIREMENTS: list[NodePoolRequirement] = []


def needs(key: str, operator: str, *values: str, least: int | None = None) -> NodePoolRequirement:
    return NodePoolRequirement(key=key, operator=operator, values=values, min_values=least)


def selected(*requirements: NodePoolRequirement) -> list[str]:
    """Which of some types of AWS the requirements allow."""
    found = NodePoolRequirements.of(requirements).select(
        [machine_catalogue("aws")[name] for name in TYPES], Provisioner.EKS
    )
    return [machine.name for machine in found.machines]


@pytest.mark.parametrize(
    ("requirements", "types"),
    [
        ([needs(f"{AWS}category", "In", "p")], ["p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge"]),
        ([needs(f"{AWS}category", "In", "p"), needs(f"{AWS}generation", "Gt", "4")], ["p5.48xlarge"]),
        ([needs(f"{AWS}family", "In", "g5", "m7i")], ["g5.12xlarge", "m7i.large"]),
        ([needs(f"{AWS}size", "NotIn", "large", "xlarge", "24xlarge")], ["p5.48xlarge", "g5.12xlarge"]),
        ([needs(f"{AWS}gpu-name", "In", "a100")], ["p4d.24xlarge", "p4de.24xlarge"]),
        ([needs(f"{AWS}gpu-memory", "Gte", "80000")], ["p4de.24xlarge", "p5.48xlarge"]),
        ([needs(f"{AWS}gpu-count", "DoesNotExist")], ["m7i.large", "m7g.large", "i4i.large", "m7i-flex.large"]),
        ([needs(f"{AWS}gpu-name", "NotIn", "a100", "h100", "a10g", "t4g")], ["m7i.large", "m7g.large", "i4i.large", "m7i-flex.large"]),
        ([needs(f"{AWS}gpu-count", "Exists"), needs(f"{AWS}cpu", "Lt", "48")], ["g5g.xlarge"]),
        ([needs(f"{AWS}local-nvme", "Lte", "468")], ["i4i.large"]),
        ([needs("kubernetes.io/arch", "In", "arm64")], ["g5g.xlarge", "m7g.large"]),
        ([needs("beta.kubernetes.io/arch", "In", "arm64"), needs("kubernetes.io/arch", "In", "amd64")], []),
        ([needs(INSTANCE_TYPE, "In", "m7i.large"), needs(f"{AWS}memory", "Gt", "9000")], []),
        ([needs(f"{AWS}capability-flex", "In", "true")], ["m7i-flex.large"]),
        ([needs(f"{AWS}cpu-manufacturer", "In", "aws")], ["g5g.xlarge", "m7g.large"]),
        ([needs(ZONE, "In", "us-east-1a"), needs(f"{AWS}family", "In", "p4de", "m7i")], ["p4de.24xlarge", "m7i.large"]),
        ([needs(ZONE, "In", "eu-west-1a"), needs(f"{AWS}family", "In", "p4de", "m7i")], ["m7i.large"]),
    ],
)  # fmt: skip
def test_requirements_select_machine_types_by_any_label_of_the_type(
    requirements: list[NodePoolRequirement], types: list[str]
) -> None:
    assert selected(*requirements) == types


def test_requirement_on_a_label_that_no_table_has_leaves_its_types_open() -> None:
    bandwidth = f"{AWS}network-bandwidth"
    found = NodePoolRequirements.of([needs(bandwidth, "Gt", "1000")]).select(
        machine_catalogue("aws").values(), Provisioner.EKS
    )
    assert found.undecided_by == (bandwidth,)
    unknown = NodePoolRequirement(key=f"{AWS}family", operator="In", values=None)
    assert NodePoolRequirements.of([unknown]).unknown_keys == {f"{AWS}family"}


def test_contradicting_requirements_on_an_offering_are_named() -> None:
    read = NodePoolRequirements.of(
        [needs(CAPACITY_TYPE, "In", "spot"), needs(CAPACITY_TYPE, "NotIn", "spot")]
    )
    assert read.contradictions(Provisioner.EKS) == (CAPACITY_TYPE,)
    assert NodePoolRequirements.of(
        [needs(ZONE, "In", "us-east-1a", least=1), needs(ZONE, "Exists", least=2)]
    ).min_values == {ZONE: 2}


@pytest.mark.parametrize(
    ("cloud", "name", "provisioner", "key", "value"),
    [
        ("aws", "p4d.24xlarge", Provisioner.AUTO, "eks.amazonaws.com/instance-gpu-name", "a100"),
        ("aws", "m7i.metal-24xl", Provisioner.EKS, f"{AWS}hypervisor", ""),
        ("aws", "m7i.large", Provisioner.EKS, f"{AWS}gpu-name", None),
        ("aws", "m7i.large", Provisioner.EKS, f"{AWS}ebs-bandwidth", UNKNOWN),
        ("azure", "Standard_NC24ads_A100_v4", Provisioner.NAP, "karpenter.azure.com/sku-gpu-name", "A100"),
        ("azure", "Standard_NC24ads_A100_v4", Provisioner.NAP, "karpenter.azure.com/sku-version", "4"),
        ("azure", "Standard_D4ds_v5", Provisioner.NAP, "karpenter.azure.com/sku-family", "D"),
        ("azure", "Standard_D4ds_v5", Provisioner.NAP, "karpenter.azure.com/sku-gpu-name", None),
        ("local", "p5.48xlarge", Provisioner.LOCAL, "karpenter.kwok.sh/instance-memory", "2Ti"),
        ("local", "m7i.4xlarge", Provisioner.LOCAL, "karpenter.kwok.sh/instance-size", "4xlarge"),
    ],
)
def test_label_of_a_machine_is_spelled_as_its_provisioner_spells_it(
    cloud: str, name: str, provisioner: Provisioner, key: str, value: object
) -> None:
    assert machine_labels(machine_catalogue(cloud)[name], provisioner)[key] == value


@pytest.mark.parametrize(
    ("requirements", "provisioner", "zones"),
    [
        ([needs(ZONE, "NotIn", "us-east-1e")], Provisioner.EKS, {f"us-east-1{letter}" for letter in "abcdf"}),
        ([needs(ZONE, "NotIn", "eu-west-1a", "eu-west-1b", "eu-west-1c")], Provisioner.EKS, NO_ZONES),
        ([needs(ZONE, "NotIn", "elsewhere-1a")], Provisioner.EKS, None),
        ([needs(ZONE, "NotIn", "local-a", "local-b", "local-c")], Provisioner.LOCAL, NO_ZONES),
        ([needs(ZONE, "In", "local-z")], Provisioner.LOCAL, NO_ZONES),
        (NO_REQUIREMENTS, Provisioner.LOCAL, {"local-a", "local-b", "local-c"}),
    ],
)
def test_zones_of_a_pool_are_those_that_exist_and_are_not_excluded(
    requirements: list[NodePoolRequirement], provisioner: Provisioner, zones: set[str] | None
) -> None:
    read = NodePoolRequirements.of(requirements)
    found = read.zones(provisioner)
    assert (None if found is None else found.values) == zones
    assert (read.contradictions(provisioner) == (ZONE,)) is (zones == NO_ZONES)
