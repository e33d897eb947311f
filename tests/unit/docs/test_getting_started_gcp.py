"""What the way onto Google Cloud says by number and name is what the program does."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from holdfast.components.cluster.gke.access import AUTH_PLUGIN
from holdfast.components.cluster.gke.system_nodes import SystemNodesArgs, account_id
from holdfast.components.operators.charted_operator import UPSTREAM
from holdfast.components.pools.gke import grace_of_user_pods
from holdfast.components.training_namespace import service_account_of
from holdfast.infra import versions
from holdfast.infra.gcp.config.pool import Upgrades
from holdfast.infra.gcp.config.stack import GcpPlatform
from holdfast.infra.gcp.preflight.queries import zones_of_cluster
from holdfast.infra.naming import gke_cluster_name, gke_environment
from holdfast.infra.program import load_platform
from holdfast.scheduling.labels import GKE_SPOT, CapacityType
from holdfast.scheduling.machines import boot_disk_of
from tests.support.doc_pages import ROOT, DocPage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.scheduling.machines import Machine

PAGE = DocPage.read("docs/getting-started-gcp.md")
OPERATIONS = DocPage.read("docs/operations.md")
CONFIGURATION = DocPage.read("docs/configuration.md")
CHARTS = {"jobset": versions.JOBSET, "kuberay-operator": versions.KUBERAY}
STACKS = ["gcp-dev", "gcp-prod"]

Needs = Counter[tuple[str, CapacityType]]


def platform_of(stack: str) -> GcpPlatform:
    platform = load_platform(ROOT / "stacks" / f"Pulumi.{stack}.yaml")
    assert isinstance(platform, GcpPlatform), "it is a stack on Google Cloud"
    return platform


def needs_of(machine: Machine, disk_gb: int) -> Iterator[tuple[str, int]]:
    """What one machine takes of each quota."""
    yield f"vCPUs of {machine.name.partition('-')[0].upper()}", machine.vcpus
    yield f"GB of {boot_disk_of(machine)}", disk_gb
    if machine.accelerator is not None:
        yield machine.accelerator, machine.gpus


def needs(platform: GcpPlatform) -> Needs:
    """What a stack takes with full pools."""
    found = Needs()
    system = platform.cluster.system_nodes
    nodes = (system.per_zone + system.spare_per_zone) * len(zones_of_cluster(platform, None))
    for what, each in needs_of(platform.system_machine, SystemNodesArgs.disk_gib):
        found[what, CapacityType.ON_DEMAND] += each * nodes
    for pool in platform.pools:
        machine = pool.machine()
        assert machine is not None, "the parser knows its machine"
        assert pool.upgrades is Upgrades.SURGE, "a blue-green pool takes twice as much"
        for what, each in needs_of(machine, pool.disk_gib):
            found[what, pool.capacity] += each * pool.max_nodes
    return found


@pytest.mark.parametrize("stack", STACKS)
def test_quotas_cover_full_pools(stack: str) -> None:
    owner, told = "", Needs()
    for row in [row for row in PAGE.rows("**Quotas**") if len(row) == 4 and row[2].isdigit()]:
        owner = row[0] or owner
        if owner == stack:
            told[row[1], CapacityType.ON_DEMAND] = int(row[2])
            told[row[1], CapacityType.SPOT] = int(row[3])
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
        f"holdfast-dev/fallback-controller:{versions.FALLBACK_CONTROLLER}",
        f"pause:{versions.PAUSE}",
    ],
)
def test_images_are_listed_at_their_versions(image: str) -> None:
    assert image in [row[1] for row in PAGE.rows("## Mirror") if len(row) == 2], "a mirror would lack it"


def test_both_pages_enable_the_same_apis() -> None:
    told = [
        re.findall(r"gcloud services enable (.*?)```", page.text, re.DOTALL) for page in (PAGE, CONFIGURATION)
    ]
    assert told[0] == told[1], "one of the two pages leaves an API out"
    assert len(told[0]) == 1, "there is one command for all of them"


@pytest.mark.parametrize(
    ("name", "where"),
    [
        (AUTH_PLUGIN, "## Before"),
        (account_id(gke_cluster_name("gcp-dev")), "## Mirror"),
        (gke_cluster_name("gcp-dev"), "## Up"),
        (gke_cluster_name("gcp-prod"), "## Where"),
        (service_account_of(gke_environment("gcp-dev")), "## Submit"),
        (GKE_SPOT, "## Submit"),
        (f"{grace_of_user_pods(30)} seconds", "## Submit"),
    ],
)
def test_names_equal_those_of_the_program(name: str, where: str) -> None:
    assert name in PAGE.section(where), "the copied command would find nothing by that name"


@pytest.mark.parametrize("stack", STACKS)
def test_commands_name_the_location_and_the_keys_of_the_stack(stack: str) -> None:
    platform = platform_of(stack)
    keys = [key for key in (platform.cluster.database_key, platform.checkpoints.kms_key) if key is not None]
    for key in keys:
        _, project, _, location, _, ring, _, name = key.split("/")
        made = f"keys create {name} --keyring {ring} --location {location} --purpose encryption --project {project}"
        assert made in PAGE.text, "no command creates the key in the stack file"
    assert f"--location {platform.location}" in PAGE.text, "the commands use the location of the cluster"


@pytest.mark.parametrize("seconds", [0, 30, 120])
def test_the_documented_grace_of_a_preempted_node_is_its_pools(seconds: int) -> None:
    users = grace_of_user_pods(seconds)
    (row,) = [row for row in OPERATIONS.rows("### A preempted node") if row[0].split("`")[0] == str(seconds)]
    assert row[1:] == [f"{users} s", f"{seconds - users} s"], "users size their grace periods by this table"


@pytest.mark.parametrize(
    "page", [PAGE, OPERATIONS, DocPage.read("README.md"), DocPage.read("docs/adr/README.md")]
)
def test_links_are_not_dead(page: DocPage) -> None:
    assert page.dead_links() == [], "a link is dead"


def test_every_decision_is_in_the_table_of_decisions() -> None:
    written = {path.name for path in (ROOT / "docs" / "adr").glob("0*.md")}
    told = set(re.findall(r"\((0[^)]+\.md)\)", DocPage.read("docs/adr/README.md").text))
    assert told == written, "a decision that is not listed is not found"
