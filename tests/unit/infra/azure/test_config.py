"""An Azure stack's configuration, read: what it means, and what is made of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.components.cluster.aks.control_plane import Maintenance, Upgrades
from holdfast.infra.azure.config.cluster import AzureMaintenanceWindow, AzureUpgrades, Login, Scaling
from holdfast.infra.azure.config.network import AzureExistingNetwork, AzureNewNetwork, Outbound
from holdfast.infra.azure.config.pool import NO_CAP
from holdfast.infra.azure.config.stack import FixedDocument, FixedPlatform, NapDocument, NapPlatform
from holdfast.infra.config.base import Section
from holdfast.infra.program import load_platform
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import family_of, is_sold_in, machine_catalogue, select_vm_sizes
from tests.support.any_json import any_json
from tests.support.builders.configurations import (
    AZURE_LOCATION,
    EXISTING_AZURE_NETWORK,
    SUBNET,
    SUBSCRIPTION,
    TENANT,
    azure_problems,
    entry,
    fixed_document,
    fixed_platform,
    nap_document,
    nap_platform,
    read_azure,
    section,
)
from tests.support.invalid_configs.azure import pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import DrawFn

    from holdfast.infra.azure.config.stack import AzurePlatform
    from holdfast.scheduling.json import Json, JsonValue
    from tests.support.builders.configurations import Document

ROOT = Path(__file__).parents[4]
STACKS = ("azure-dev", "azure-prod")


def test_a_bare_pool_and_a_way_in_are_enough() -> None:
    bare: Document = {
        "cloud": "azure",
        "cluster": {"access": {"private": True}},
        "pools": [
            {
                "name": "cpu",
                "capacity": "on-demand",
                "vmSizes": ["Standard_D4ds_v5"],
                "maxNodes": 2,
                "default": True,
            }
        ],
    }
    platform = read_azure(bare, subscription=None)
    assert isinstance(platform, NapPlatform), "node auto-provisioning is what a stack has that says nothing"
    assert platform.protected, "what is forgotten must not be what can be destroyed"
    assert platform.network == AzureNewNetwork(), "a network is made"
    assert platform.cluster.system_nodes.count == 2, "the operators outlive one of their nodes"
    assert platform.cluster.login is Login.AZURE_CLI, "kubelogin takes whoever `az login` let in"
    assert (platform.subscription_id, platform.tenant_id) == (None, None), "and Azure is asked whose they are"


def test_what_stands_beside_the_document_is_kept() -> None:
    platform = read_azure(nap_document(), tenant=TENANT)
    assert (platform.location, platform.subscription_id, platform.tenant_id) == (
        AZURE_LOCATION,
        SUBSCRIPTION,
        TENANT,
    ), "there is one place for each"


def test_the_way_of_scaling_says_what_pools_are() -> None:
    assert nap_platform().cluster.scaling is Scaling.NAP, "one model of pools"
    platform = fixed_platform()
    assert isinstance(platform, FixedPlatform), "and another"
    assert platform.cluster.scaling is Scaling.FIXED, "which the cluster says"


def test_families_are_every_size_that_the_location_sells() -> None:
    machines = nap_platform().pools[1].machines(AZURE_LOCATION)
    assert [machine.name for machine in machines] == [
        "Standard_D8ds_v5",
        "Standard_D16ds_v5",
        "Standard_D8ads_v5",
        "Standard_D16ads_v5",
    ], "in the order of the families, then of the numbers: the same configuration gives the same pool"


def test_a_family_of_a_spot_pool_is_what_is_sold_on_spot() -> None:
    for machine in nap_platform().pools[1].machines(AZURE_LOCATION):
        assert machine.on_spot, "the pool could buy nothing of the others"


@pytest.mark.parametrize(
    ("size", "family"),
    [
        ("Standard_D4ds_v5", "Dds_v5"),
        ("Standard_NC24ads_A100_v4", "NCads_A100_v4"),
        ("Standard_ND96isr_H100_v5", "NDisr_H100_v5"),
        ("Standard_F16s_v2", "Fs_v2"),
        ("Standard_E8-4ads_v5", None),
    ],
)
def test_a_family_is_a_name_without_its_number(size: str, family: str | None) -> None:
    assert family_of(size) == family, "and what pays for more vCPUs than it has is in none"


def test_every_vm_size_is_of_the_family_by_which_it_is_found() -> None:
    for name, machine in machine_catalogue("azure").items():
        family = family_of(name)
        if family is not None and is_sold_in(name, AZURE_LOCATION):
            assert machine in select_vm_sizes([family], [machine.vcpus], AZURE_LOCATION), (
                f"{name} is found by neither"
            )


def test_gpus_are_those_of_the_machine() -> None:
    assert [pool.has_gpus for pool in nap_platform().scheduling_pools()] == [False, False, True, True], (
        "nobody had to say so"
    )
    assert [pool.has_gpus for pool in fixed_platform().scheduling_pools()] == [False, False, True, True], (
        "in scale sets neither"
    )


def test_a_price_cap_is_up_to_the_on_demand_price_unless_one_is_written() -> None:
    assert [pool.price_cap for pool in fixed_platform().pools] == [NO_CAP, 0.5, NO_CAP, NO_CAP], (
        "as AKS spells it"
    )


@pytest.mark.parametrize("zones", [[1, 2], ["1", "2"], ["1", 2]])
def test_zones_are_numbers_however_they_are_written(zones: list[int | str]) -> None:
    platform = nap_platform(pool(0, zones=cast("JsonValue", zones)))
    assert platform.pools[0].zones == ("1", "2"), "Azure takes them as texts"


def test_one_id_brings_a_network() -> None:
    network = nap_platform(lambda d: d.update(network=EXISTING_AZURE_NETWORK)).network
    assert isinstance(network, AzureExistingNetwork), "nothing else says so"
    assert (network.subnet_id, network.outbound) == (SUBNET, Outbound.NAT_GATEWAY), "with a NAT gateway on it"


def test_what_is_not_said_of_upgrades_is_what_the_cluster_would_do() -> None:
    asked, known = AzureUpgrades(), Upgrades()
    assert (asked.cluster.value, asked.node_os.value) == (known.cluster, known.node_os), (
        "two defaults would differ one day"
    )


def test_a_window_is_one_that_the_cluster_takes() -> None:
    window = AzureMaintenanceWindow()
    taken = Maintenance(day="Saturday", start=window.start, hours=window.hours, start_date=window.start_date)
    assert window.day.value.capitalize() == taken.day, "the day is AKS's, in small letters"
    assert taken.start_date == AzureMaintenanceWindow(hours=4).start_date, "or each update would move it"


def tracked(stack: str) -> AzurePlatform:
    return cast("AzurePlatform", load_platform(ROOT / f"stacks/Pulumi.{stack}.yaml"))


@pytest.mark.parametrize("stack", STACKS)
def test_the_stacks_of_this_repository_are_valid(stack: str) -> None:
    assert tracked(stack).cloud == "azure", "and are read as what they are"


def test_both_ways_of_scaling_are_rehearsed() -> None:
    ways = {tracked(stack).cluster.scaling for stack in STACKS}
    assert ways == set(Scaling), "what no stack does nobody would see break"


def test_the_development_stack_needs_no_quota_of_gpus_and_can_go() -> None:
    platform = tracked("azure-dev")
    assert not any(pool.has_gpus for pool in platform.scheduling_pools()), "a new subscription has none"
    assert not platform.protected, "it is there to be thrown away, since it cannot be stopped"
    assert any(pool.capacity is CapacityType.SPOT for pool in platform.pools), "and shows what spot does"


def test_the_production_stack_is_closed_redundant_and_protected() -> None:
    platform = tracked("azure-prod")
    system = platform.cluster.system_nodes
    assert platform.cluster.access.private, "no address answers the internet"
    assert len(system.zones) == system.count == 3, "a zone that fails takes no more than one operators' node"
    assert platform.protected, "nobody destroys it by a slip"
    assert platform.cluster.maintenance.exclusions, "and nobody upgrades while all are away"
    assert platform.cluster.disk_encryption_set, "its disks are behind a key of one's own"
    assert platform.checkpoints.redundancy == "Standard_ZRS", (
        "and a zone that fails takes no checkpoint with it"
    )


def test_every_spot_tier_of_the_tracked_stacks_ends_on_demand() -> None:
    for stack in STACKS:
        platform = tracked(stack)
        capacity = {pool.name: pool.capacity for pool in platform.pools}
        for namespace in platform.namespaces:
            last = namespace.ladder[-1].pool
            assert capacity[last] is CapacityType.ON_DEMAND, (
                f"{stack}: {namespace.name} has somewhere to fall back to"
            )


def test_reading_an_azure_stack_imports_no_sdk() -> None:
    program = (
        "import sys; from pathlib import Path; from holdfast.infra.program import load_platform; "
        f"[load_platform(Path({str(ROOT)!r}) / f'stacks/Pulumi.{{stack}}.yaml') for stack in {STACKS}]; "
        "print([name for name in ('pulumi_azure_native', 'pulumi_kubernetes') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]", "a rehearsal reads it several times, and the SDK takes seconds"


MACHINES = {
    name: machine
    for name, machine in machine_catalogue("azure").items()
    if is_sold_in(name, AZURE_LOCATION) and machine.arch == "amd64"
}
PLAIN = sorted(name for name, machine in MACHINES.items() if not machine.gpus and machine.on_demand)


def sold_as(capacity: str) -> list[str]:
    """VM sizes that are sold so."""
    return sorted(
        name
        for name, machine in MACHINES.items()
        if (machine.on_spot if capacity == "spot" else machine.on_demand)
    )


@st.composite
def pools(draw: DrawFn, index: int, scaling: str) -> Document:
    """A valid pool; the first one is the default."""
    capacity = "on-demand" if index == 0 else draw(st.sampled_from(["spot", "on-demand"]))
    size = draw(st.sampled_from(PLAIN if index == 0 else sold_as(capacity)))
    made: Document = {
        "name": f"pool-{index}",
        "capacity": capacity,
        "maxNodes": draw(st.integers(1, 100)),
        "diskGiB": draw(st.integers(30, 2048)),
        "zones": cast("JsonValue", draw(st.lists(st.integers(1, 3), max_size=3, unique=True))),
    }
    if index == 0:
        made["default"] = True
    if scaling == "nap":
        made["vmSizes"] = [size]
        made["rollOut"] = draw(st.booleans())
    else:
        made["vmSize"] = size
    if scaling == "fixed" and capacity == "spot":
        made["spotMaxPrice"] = draw(
            st.just(-1) | st.integers(1, 10_000_000).map(lambda cents: cents / 100_000)
        )
    return made


@st.composite
def platforms(draw: DrawFn) -> Document:
    """A valid Azure stack's document."""
    scaling = draw(st.sampled_from(["nap", "fixed"]))
    public: Document = {"public": {"cidrs": ["203.0.113.0/24"]}}
    return {
        "cloud": "azure",
        "protected": draw(st.booleans()),
        "cluster": {
            "scaling": scaling,
            "login": draw(st.sampled_from([login.value for login in Login])),
            "access": draw(
                st.sampled_from([public, {"private": True}, {"private": True, "publicName": True}])
            ),
            "upgrades": {
                "nodeOs": draw(st.sampled_from(["None", "Unmanaged", "SecurityPatch", "NodeImage"]))
            },
            "maintenance": {
                "window": {"hours": draw(st.integers(4, 24)), "everyWeeks": draw(st.integers(1, 4))}
            },
        },
        "network": draw(st.sampled_from([EXISTING_AZURE_NETWORK, {"cidr": "10.40.0.0/16"}])),
        "pools": [draw(pools(index, scaling)) for index in range(draw(st.integers(1, 4)))],
        "checkpoints": {"retainDays": draw(st.integers(1, 365))},
    }


@given(platforms())
@settings(max_examples=40, deadline=None)
def test_a_platform_written_again_reads_as_the_same(document: Document) -> None:
    platform = read_azure(document)
    beside = {"location", "subscription_id", "tenant_id"}
    written = cast(
        "Json", json.loads(platform.model_dump_json(by_alias=True, exclude_none=True, exclude=beside))
    )
    assert read_azure({**written}) == platform, "nothing is lost or changed on the way"


@given(platforms(), st.data())
@settings(max_examples=40, deadline=None)
def test_one_unknown_field_anywhere_is_exactly_one_problem(document: Document, data: st.DataObject) -> None:
    document = cast("Document", json.loads(json.dumps(document)))
    places = [
        document,
        *(cast("Document", document[name]) for name in ("network", "cluster", "checkpoints")),
        section(section(document, "cluster"), "access"),
        *cast("list[Document]", document["pools"]),
    ]
    data.draw(st.sampled_from(places))["surprise"] = 1
    (found,) = azure_problems(document)
    assert found.field.endswith(".surprise"), (
        "the field is named, without the parser's names for what it tried"
    )


@given(
    any_json(
        "cluster",
        "access",
        "public",
        "scaling",
        "network",
        "cidr",
        "subnetId",
        "pools",
        "vmSize",
        "namespaces",
    ),
    st.sampled_from([None, "", "eastus2", "mars"]),
)
@settings(max_examples=150, deadline=None)
def test_any_document_is_read_or_refused_and_nothing_else_happens(
    document: JsonValue, location: str | None
) -> None:
    given_cloud: Document = (
        {**document, "cloud": "azure"} if isinstance(document, dict) else {"cloud": "azure"}
    )
    found = azure_problems(given_cloud, location)
    assert found, "no document that was made at random is whole"
    assert all(problem.fix for problem in found), "a refusal without a fix leaves the user alone"


def documented() -> str:
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("\n## `azure` only\n")
    return rest.partition("\n## ")[0]


def test_the_examples_in_the_documentation_are_valid() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", documented(), re.DOTALL)
    assert len(examples) == 2, "one for each way of scaling"
    for example in examples:
        config = cast("dict[str, Document]", yaml.safe_load(example)["config"])
        found = azure_problems(config["holdfast:platform"], str(config["azure-native:location"]))
        assert not found, "it is copied before anything else is read"


def sections_of(section: type[Section]) -> Iterator[type[Section]]:
    yield section
    for info in section.model_fields.values():
        for part in (info.annotation, *get_args(info.annotation)):
            for inner in (part, *get_args(part)):
                if isinstance(inner, type) and issubclass(inner, Section):
                    yield from sections_of(inner)


def test_every_field_is_documented() -> None:
    text = (
        documented()
        + (ROOT / "docs/configuration.md").read_text(encoding="utf-8").partition("\n## `local` only")[0]
    )
    documents = (NapDocument, FixedDocument)
    fields = {name for one in documents for part in sections_of(one) for name in part.field_names()}
    assert {"podsCidr", "egressCidrs", "publicName", "spotMaxPrice", "vcpus"} <= fields, (
        "else this shows little"
    )
    missing = sorted(name for name in fields if not re.search(rf"\b{name}\b", text))
    assert not missing, "what nobody finds nobody uses"


@pytest.mark.parametrize("size", ["Standard_D4ds_v5", "Standard_NC24ads_A100_v4"])
def test_addresses_hold_as_many_nodes_as_the_pools_may_have(size: str) -> None:
    def change(document: Document) -> None:
        entry(document, "pools", 3).update(vmSize=size, maxNodes=1000)
        document.pop("namespaces")

    found = {problem.field.rpartition(".")[2] for problem in azure_problems(fixed_document(change))}
    nodes = sum(pool.max_nodes for pool in fixed_platform().pools) - 4 + 1000
    assert found == {"podsCidr"}, "each node takes a /24 of the pods'"
    assert IPv4Network("10.244.0.0/14").num_addresses // 256 < nodes, "and the default has fewer"
