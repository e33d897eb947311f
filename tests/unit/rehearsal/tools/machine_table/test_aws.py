"""The machine table of AWS is generated from descriptions of EC2."""

import json
from typing import cast

import pytest

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.machines.catalogue import AwsTable, aws_table
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.tools.machine_table.aws import COLUMNS, AwsMarket, machine_table, prices

MARKET = AwsMarket(
    types={"us-east-1": frozenset({"p4d.24xlarge"}), "eu-west-1": frozenset({"p4d.24xlarge", "m7i.large"})},
    zones={"us-east-1": frozenset({"us-east-1b", "us-east-1a"})},
    prices={"p4d.24xlarge": 21.957642},
)

LISTS = """
var InitialOnDemandPrices = map[string]map[ec2types.InstanceType]float64{
\t// us-gov-east-1
\t"us-gov-east-1": {
\t\t// c5 family
\t\t"c5.large": 0.102000, "c5.metal": 4.896000,
\t},
\t"us-gov-west-1": {
\t\t"u-6tb1.56xlarge": 46.400000,
\t},
}
"""


def described(name: str = "p4d.24xlarge", **changes: JsonValue) -> Json:
    """The description of a machine with GPUs by EC2, with changes."""
    return {
        "InstanceType": name,
        "CurrentGeneration": True,
        "Hypervisor": "nitro",
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"], "Manufacturer": "Intel"},
        "VCpuInfo": {"DefaultVCpus": 96},
        "MemoryInfo": {"SizeInMiB": 1179648},
        "GpuInfo": {"Gpus": [{"Name": "A100", "Count": 8, "MemoryInfo": {"SizeInMiB": 40960}}]},
        "InstanceStorageInfo": {"NvmeSupport": "required", "TotalSizeInGB": 8000},
        "NetworkInfo": {
            "EfaInfo": {"MaximumEfaInterfaces": 4},
            "Ipv4AddressesPerInterface": 50,
            "DefaultNetworkCardIndex": 1,
            "NetworkCards": [{"MaximumNetworkInterfaces": 4}, {"MaximumNetworkInterfaces": 15}],
        },
        "SupportedUsageClasses": ["on-demand", "spot"],
        **changes,
    }


def table(*machines: Json, market: AwsMarket = MARKET) -> AwsTable:
    return cast("AwsTable", json.loads(machine_table(machines, market)))


def test_table_has_a_line_for_each_machine_sorted_by_name() -> None:
    text = machine_table([described()], MARKET)
    assert (
        '["p4d.24xlarge","amd64",96,1179648,8,"a100",4,true,40960,8000,737,"intel","nitro",21.957642,"ab"]'
        in text.splitlines()
    )
    made = table(described(), described("m7i.large", GpuInfo=None))
    offered = {
        name: [made["regions"][letter] for letter in letters] for name, *_, letters in made["machines"]
    }
    assert offered == {"m7i.large": ["eu-west-1"], "p4d.24xlarge": ["eu-west-1", "us-east-1"]}
    assert table(described())["zones"] == {"eu-west-1": "", "us-east-1": "ab"}
    made = table(described("p4d.24xlarge"), described("m7i.large"))
    assert [name for name, *_ in made["machines"]] == ["m7i.large", "p4d.24xlarge"]
    (row,) = table(described("m7i.large"))["machines"]
    assert row[COLUMNS.index("hourlyPrice")] is None
    crowded = AwsMarket(types={f"r-{i}": frozenset() for i in range(53)}, zones={}, prices={})
    with pytest.raises(RehearsalError, match="53 regions"):
        machine_table([described()], crowded)


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("a Mac", {"ProcessorInfo": {"SupportedArchitectures": ["arm64_mac"]}}),
        ("an FPGA", {"FpgaInfo": {"Fpgas": []}}),
        ("Inferentia", {"InferenceAcceleratorInfo": {"Accelerators": [{"Name": "Inferentia"}]}}),
        ("Trainium", {"NeuronInfo": {"NeuronDevices": [{"Name": "Trainium"}]}}),
        ("Trainium that EC2 does not describe", {"InstanceType": "trn2u.48xlarge"}),
        ("a transcoder", {"MediaAcceleratorInfo": {"Accelerators": [{"Name": "U30"}]}}),
        ("a fractional GPU", {"GpuInfo": {"Gpus": [{"Name": "L4", "Count": 0}]}}),
        ("a retired generation before Nitro", {"CurrentGeneration": False, "Hypervisor": "xen"}),
    ],
)
def test_unsupported_machine_is_omitted(reason: str, changes: dict[str, JsonValue]) -> None:
    assert table({**described(), **changes})["machines"] == [], f"{reason} cannot be a node"


def test_disks_without_nvme_and_machines_without_described_network_have_none() -> None:
    (row,) = table(
        described(InstanceStorageInfo={"NvmeSupport": "unsupported", "TotalSizeInGB": 100}, NetworkInfo={})
    )["machines"]
    assert row[COLUMNS.index("localNvmeGB")] == 0
    assert row[COLUMNS.index("maxPods")] == 0


def test_older_generation_with_nitro_is_included() -> None:
    assert table(described(CurrentGeneration=False))["machines"]


def test_price_list_and_committed_table_have_the_expected_form() -> None:
    assert prices(LISTS) == {
        "us-gov-east-1": {"c5.large": 0.102, "c5.metal": 4.896},
        "us-gov-west-1": {"u-6tb1.56xlarge": 46.4},
    }
    assert tuple(aws_table()["columns"]) == COLUMNS
    assert {len(row) for row in aws_table()["machines"]} == {len(COLUMNS)}
