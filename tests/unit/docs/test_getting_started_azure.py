"""Numbers and names in the Azure guide equal those of the program."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import yaml

from holdfast.components.cluster.aks.access import KUBELOGIN
from holdfast.components.cluster.aks.control_plane import SYSTEM_TAINT
from holdfast.components.iam import azure
from holdfast.components.operators.charted_operator import UPSTREAM
from holdfast.infra import versions
from holdfast.infra.azure.config.cluster import Login, Scaling
from holdfast.infra.azure.config.stack import FixedPlatform, NapPlatform
from holdfast.infra.naming import aks_cluster_name
from holdfast.infra.program import load_platform
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import family_of
from tests.support.doc_pages import ROOT, DocPage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.azure.config.stack import AzurePlatform
    from holdfast.scheduling.machines import Machine
    from holdfast.scheduling.pools import Pool

PAGE = DocPage.read("docs/getting-started-azure.md")
OPERATIONS = DocPage.read("docs/operations.md")
CONFIGURATION = DocPage.read("docs/configuration.md")
CHARTS = {
    "jobset": versions.JOBSET,
    "kuberay-operator": versions.KUBERAY,
    "nvidia-device-plugin": versions.NVIDIA_DEVICE_PLUGIN,
}
STACKS = ["azure-dev", "azure-prod"]
ALL = "all families"

Needs = Counter[tuple[str, CapacityType]]


def platform_of(stack: str) -> AzurePlatform:
    platform = load_platform(ROOT / "stacks" / f"Pulumi.{stack}.yaml")
    assert isinstance(platform, NapPlatform | FixedPlatform), "it is a stack on Azure"
    return platform


def pools_of(platform: AzurePlatform) -> Iterator[tuple[Pool, tuple[Machine, ...]]]:
    """Each pool, with the machines that it may have."""
    if isinstance(platform, NapPlatform):
        for nap in platform.pools:
            yield nap.as_pool(platform.location), nap.machines(platform.location)
        return
    for fixed in platform.pools:
        machine = fixed.machine()
        assert machine is not None, "the parser knows its machine"
        yield fixed.as_pool(), (machine,)


def needs(platform: AzurePlatform) -> Needs:
    """The vCPUs that a stack takes with full pools: of each family, as if it alone were bought."""
    found = Needs()
    system, nodes = platform.system_machine, platform.cluster.system_nodes.count
    for of in (ALL, str(family_of(system.name))):
        found[of, CapacityType.ON_DEMAND] += system.vcpus * nodes
    for pool, machines in pools_of(platform):
        found[ALL, pool.capacity] += max(machine.vcpus for machine in machines) * pool.max_nodes
        if pool.capacity is CapacityType.SPOT:
            continue
        for family in {str(family_of(machine.name)) for machine in machines}:
            largest = max(machine.vcpus for machine in machines if family_of(machine.name) == family)
            found[family, pool.capacity] += largest * pool.max_nodes
    return found


@pytest.mark.parametrize("stack", STACKS)
def test_quotas_cover_full_pools(stack: str) -> None:
    owner, told = "", Needs()
    for row in [row for row in PAGE.rows("**Quotas**") if len(row) == 4 and row[2].isdigit()]:
        owner = row[0] or owner
        if owner == stack:
            told[row[1], CapacityType.ON_DEMAND] = int(row[2])
            told[row[1], CapacityType.SPOT] = int(row[3] or 0)
    assert +told == needs(platform_of(stack)), "with a lower quota a pool never fills"


def test_every_chart_is_listed_with_its_version_and_its_upstream() -> None:
    listed = PAGE.charts("## Mirror")
    wanted = {chart: [version, UPSTREAM[chart]] for chart, version in CHARTS.items()}
    assert {chart: listed.get(chart) for chart in CHARTS} == wanted, "a mirror would miss one"


@pytest.mark.parametrize(
    "image",
    [
        f"jobset/jobset:v{versions.JOBSET}",
        f"kuberay/operator:v{versions.KUBERAY}",
        f"nvidia/k8s-device-plugin:v{versions.NVIDIA_DEVICE_PLUGIN}",
    ],
)
def test_images_are_listed_at_their_versions(image: str) -> None:
    assert image in [row[1] for row in PAGE.rows("## Mirror") if len(row) == 2], "a mirror would lack it"


def test_the_deployers_condition_lists_exactly_the_assigned_roles() -> None:
    given = {
        azure.AKS_RBAC_CLUSTER_ADMIN,
        azure.NETWORK_CONTRIBUTOR,
        azure.READER,
        azure.STORAGE_BLOB_DATA_CONTRIBUTOR,
    }
    lists = re.findall(r"GuidEquals \{([^}]*)\}", PAGE.section("## Before"))
    assert [set(found.split(", ")) for found in lists] == [given, given], (
        "a missing role stops the first update; an extra one is an escalation path"
    )


@pytest.mark.parametrize(
    ("name", "where"),
    [
        (KUBELOGIN, "## Before"),
        (aks_cluster_name("azure-dev"), "## Up"),
        (aks_cluster_name("azure-prod"), "## Where"),
        (f"{aks_cluster_name('azure-dev')}-nodes", "## Submit"),
        *((f"`{login.value}`", "## Before") for login in Login),
    ],
)
def test_names_equal_those_of_the_program(name: str, where: str) -> None:
    assert name in PAGE.section(where), "the copied command would find nothing by that name"


def test_commands_create_the_disk_encryption_set_of_the_stack() -> None:
    named = platform_of("azure-prod").cluster.disk_encryption_set
    assert named is not None, "the stack's file names one"
    group, name = named.split("/")[4], named.split("/")[-1]
    assert f"disk-encryption-set create --name {name} --resource-group {group}" in PAGE.text, (
        "no command creates another one"
    )
    assert f"--location {platform_of('azure-prod').location}" in PAGE.text, "it is where the stack is"


@pytest.mark.parametrize("manifest", ["jobset-spot.yaml", "jobset-spot-gpu.yaml", "rayjob-spot.yaml"])
def test_examples_keep_the_documented_grace_period(manifest: str) -> None:
    text = (ROOT / "examples/azure" / manifest).read_text("utf-8")
    assert all(yaml.safe_load_all(text)), "it is a manifest"
    (told,) = re.findall(r"`terminationGracePeriodSeconds` of (\d+) or less", PAGE.section("## Submit"))
    graces = {int(found) for found in re.findall(r"terminationGracePeriodSeconds: (\d+)", text)}
    assert graces, "without one a pod asks for 30 seconds"
    assert max(graces) <= int(told), "spot machines give no more"
    assert "10 is more than Azure often leaves" in " ".join(OPERATIONS.section("## Azure").split()), (
        "the two pages say the same"
    )


def test_the_example_of_a_checkpoint_interval_is_correct() -> None:
    chapter = " ".join(OPERATIONS.section("## Azure").split())
    apart = 4 * 3600
    minutes = [round(math.sqrt(2 * seconds * apart) / 60) for seconds in (60, 5)]
    assert "`√(2·C·T)`" in chapter, "the formula is there"
    told = f"{minutes[0]} minutes for 1 minute to write and an eviction every 4 hours, {minutes[1]} minutes for 5 seconds"
    assert told in chapter, "its examples follow from the formula"


def test_alternatives_to_stopping_the_cluster_are_documented() -> None:
    assert platform_of("azure-dev").cluster.scaling is Scaling.NAP, "node auto-provisioning cannot be stopped"
    chapter = OPERATIONS.section("## Azure").partition("### A development stack on Azure")[2]
    for way in ("pulumi destroy -s azure-dev", "`scaling: fixed`", "azcopy copy"):
        assert way in chapter, "one of the ways out"
    assert not platform_of("azure-dev").protected, "so it can be destroyed in the evening"


def test_the_documented_taint_of_system_nodes_is_the_programs() -> None:
    key = SYSTEM_TAINT.partition("=")[0]
    (row,) = [row for row in CONFIGURATION.rows("## `azure` only") if row[0] == "systemNodes"]
    assert f"`{key}`" in row[2], "what tolerates it lands there"


@pytest.mark.parametrize("page", [PAGE, OPERATIONS, CONFIGURATION, DocPage.read("README.md")])
def test_links_are_not_dead(page: DocPage) -> None:
    assert page.dead_links() == [], "a link is dead"
