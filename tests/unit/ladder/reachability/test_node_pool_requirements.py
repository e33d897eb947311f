import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.reachability.node_labels import Provisioner, machine_labels
from pulumi_holdfast.ladder.reachability.node_pool_requirements import (
    NodePoolRequirement,
    NodePoolRequirements,
)

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
