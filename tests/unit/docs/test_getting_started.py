"""Numbers and names in the guides of all clouds equal those of the program."""

import math
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from pulumi_holdfast.aws.config.sections import AwsPlatform
from pulumi_holdfast.aws.network import ISOLATED_SERVICES
from pulumi_holdfast.aws.preflight.quotas import quota_demands
from pulumi_holdfast.azure import role_assignments as azure
from pulumi_holdfast.azure.config.sections import AzurePlatform, Login, Scaling
from pulumi_holdfast.azure.control_plane.access import KUBELOGIN
from pulumi_holdfast.azure.control_plane.control_plane import SYSTEM_TAINT
from pulumi_holdfast.config import versions
from pulumi_holdfast.config.naming import aks_cluster_name, gke_cluster_name, gke_environment
from pulumi_holdfast.gcp.config.sections import GcpPlatform, Upgrades
from pulumi_holdfast.gcp.control_plane.access import AUTH_PLUGIN
from pulumi_holdfast.gcp.control_plane.system_nodes import SystemNodesArgs, account_id
from pulumi_holdfast.gcp.pools import grace_of_user_pods
from pulumi_holdfast.gcp.preflight.quotas import zones_of_cluster
from pulumi_holdfast.kubernetes.operators.charted_operator import UPSTREAM
from pulumi_holdfast.kubernetes.training_namespace import service_account_of
from pulumi_holdfast.ladder.labels import GKE_SPOT, CapacityType
from pulumi_holdfast.ladder.machines import Machine, boot_disk_of, family_of
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.stack_program import load_platform
from tests.support.builders.configurations import new_cluster
from tests.support.doc_pages import ROOT, DocPage
from tests.support.fakes.iam_linter import lint

PAGES = {cloud: DocPage.read(f"docs/getting-started-{cloud}.md") for cloud in ("aws", "azure", "gcp")}
OPERATIONS = DocPage.read("docs/operations.md")
CONFIGURATION = DocPage.read("docs/configuration.md")
ADRS = DocPage.read("docs/adr/README.md")

Needs = Counter[tuple[str, CapacityType]]


class Mirror(NamedTuple):
    """The section of a guide that lists charts and images, and what it lists."""

    section: str
    charts: dict[str, str]
    images: tuple[str, ...]


CHARTS = {"jobset": versions.JOBSET, "kuberay-operator": versions.KUBERAY}
NVIDIA = {"nvidia-device-plugin": versions.NVIDIA_DEVICE_PLUGIN}
KARPENTER_AND_EFA = {"karpenter": versions.KARPENTER, "aws-efa-k8s-device-plugin": versions.EFA_DEVICE_PLUGIN}
IMAGES = (f"jobset/jobset:v{versions.JOBSET}", f"kuberay/operator:v{versions.KUBERAY}")
PLUGIN = f"nvidia/k8s-device-plugin:v{versions.NVIDIA_DEVICE_PLUGIN}"
PYTHON, PYTHON_DIGEST = versions.PYTHON_IMAGE.split("@")
PAUSE, PAUSE_DIGEST = versions.PAUSE.split("@")
OURS = (f"library/python:{PYTHON}", f"pause:{PAUSE}")
KARPENTER = (f"karpenter/controller:{versions.KARPENTER}", versions.KARPENTER_IMAGE_DIGEST)
MIRRORS = {
    "aws": Mirror(
        "## Isolated",
        CHARTS | NVIDIA | KARPENTER_AND_EFA,
        (*IMAGES, PLUGIN, *OURS, *KARPENTER, PYTHON_DIGEST),
    ),
    "azure": Mirror("## Mirror", CHARTS | NVIDIA, (*IMAGES, PLUGIN, *OURS, PYTHON_DIGEST)),
    "gcp": Mirror("## Mirror", CHARTS, (*IMAGES, *OURS, PYTHON_DIGEST)),
}


@pytest.mark.parametrize("cloud", MIRRORS)
def test_charts_and_images_of_a_mirror_are_listed_at_their_versions(cloud: str) -> None:
    page, mirror = PAGES[cloud], MIRRORS[cloud]
    listed = page.charts(mirror.section)
    wanted = {chart: [version, UPSTREAM[chart]] for chart, version in mirror.charts.items()}
    known = UPSTREAM if cloud == "aws" else mirror.charts
    assert {chart: listed.get(chart) for chart in known} == wanted, "a mirror would miss one"
    rows = [row[1] for row in page.rows(mirror.section) if len(row) == 2]
    for image in mirror.images:
        listed = image in rows or image in page.section(mirror.section)
        assert listed, "a mirror would lack it"


def aws_platform(stack: str) -> AwsPlatform:
    platform = load_platform(ROOT / "stacks" / f"Pulumi.{stack}.yaml")
    assert isinstance(platform, AwsPlatform)
    return platform


def azure_platform(stack: str) -> AzurePlatform:
    platform = load_platform(ROOT / "stacks" / f"Pulumi.{stack}.yaml")
    assert isinstance(platform, AzurePlatform), "it is a stack on Azure"
    return platform


def gcp_platform(stack: str) -> GcpPlatform:
    platform = load_platform(ROOT / "stacks" / f"Pulumi.{stack}.yaml")
    assert isinstance(platform, GcpPlatform)
    return platform


@pytest.mark.parametrize("stack", ["aws-dev", "aws-prod"])
def test_quotas_on_aws_cover_full_pools(stack: str) -> None:
    wanted = Counter[str]()
    for need in quota_demands(aws_platform(stack)):
        wanted[need.quota.code] += need.vcpus
    owner, told = "", dict[str, int]()
    rows = [row for row in PAGES["aws"].rows("**Quotas.**") if re.fullmatch(r"L-[0-9A-F]{8}", row[2])]
    for row in rows:
        owner = row[0] or owner
        told |= {row[2]: int(row[3])} if owner == stack else {}
    assert told == dict(wanted)


def azure_pools(platform: AzurePlatform) -> Iterator[tuple[Pool, tuple[Machine, ...]]]:
    """Each pool, with the machines that it may have."""
    for pool in platform.pools:
        yield pool.as_pool(platform.location), pool.machines(platform.location)


def azure_needs(platform: AzurePlatform) -> Needs:
    """The vCPUs that a stack takes with full pools: of each family, as if it alone were bought."""
    found, everything = Needs(), "all families"
    system, nodes = platform.system_machines()[0], new_cluster(platform.cluster).system_nodes.count
    for of in (everything, str(family_of(system.name))):
        found[of, CapacityType.ON_DEMAND] += system.vcpus * nodes
    for pool, machines in azure_pools(platform):
        found[everything, pool.capacity] += max(machine.vcpus for machine in machines) * pool.max_nodes
        if pool.capacity is CapacityType.SPOT:
            continue
        for family in {str(family_of(machine.name)) for machine in machines}:
            largest = max(machine.vcpus for machine in machines if family_of(machine.name) == family)
            found[family, pool.capacity] += largest * pool.max_nodes
    return found


def gcp_machine_needs(machine: Machine, disk_gb: int) -> Iterator[tuple[str, int]]:
    """What one machine takes of each quota."""
    yield f"vCPUs of {machine.name.partition('-')[0].upper()}", machine.vcpus
    yield f"GB of {boot_disk_of(machine)}", disk_gb
    if machine.accelerator is not None:
        yield machine.accelerator, machine.gpus


def gcp_needs(platform: GcpPlatform) -> Needs:
    """What a stack takes with full pools."""
    found = Needs()
    system = new_cluster(platform.cluster).system_nodes
    nodes = (system.per_zone + system.spare_per_zone) * len(zones_of_cluster(platform, None))
    for what, each in gcp_machine_needs(platform.system_machines()[0], SystemNodesArgs.disk_gib):
        found[what, CapacityType.ON_DEMAND] += each * nodes
    for pool in platform.pools:
        machine = pool.machine()
        assert machine is not None
        assert pool.upgrades is Upgrades.SURGE
        for what, each in gcp_machine_needs(machine, pool.disk_gib):
            found[what, pool.capacity] += each * pool.max_nodes
    return found


@pytest.mark.parametrize("stack", ["azure-dev", "azure-prod", "gcp-dev", "gcp-prod"])
def test_quotas_on_azure_and_google_cloud_cover_full_pools(stack: str) -> None:
    cloud, owner, told = stack.partition("-")[0], "", Needs()
    for row in [row for row in PAGES[cloud].rows("**Quotas**") if len(row) == 4 and row[2].isdigit()]:
        owner = row[0] or owner
        if owner == stack:
            told[row[1], CapacityType.ON_DEMAND] = int(row[2])
            told[row[1], CapacityType.SPOT] = int(row[3] or 0)
    needs = azure_needs(azure_platform(stack)) if cloud == "azure" else gcp_needs(gcp_platform(stack))
    assert +told == needs


@pytest.mark.parametrize(
    ("cloud", "name", "where"),
    [
        ("azure", KUBELOGIN, "## Before"),
        ("azure", aks_cluster_name("azure-dev"), "## Up"),
        ("azure", aks_cluster_name("azure-prod"), "## Where"),
        ("azure", f"{aks_cluster_name('azure-dev')}-nodes", "## Submit"),
        *(("azure", f"`{login.value}`", "## Before") for login in Login),
        ("gcp", AUTH_PLUGIN, "## Before"),
        ("gcp", account_id(gke_cluster_name("gcp-dev")), "## Mirror"),
        ("gcp", gke_cluster_name("gcp-dev"), "## Up"),
        ("gcp", gke_cluster_name("gcp-prod"), "## Where"),
        ("gcp", service_account_of(gke_environment("gcp-dev")), "## Submit"),
        ("gcp", GKE_SPOT, "## Submit"),
        ("gcp", f"{grace_of_user_pods(30)} seconds", "## Submit"),
        *(("aws", f"`{service}`", "## Isolated") for service in ISOLATED_SERVICES),
    ],
)
def test_names_equal_those_of_the_program(cloud: str, name: str, where: str) -> None:
    assert name in PAGES[cloud].section(where), "the copied command would find nothing by that name"


def test_permissions_of_deployers_are_those_of_the_program(tmp_path: Path) -> None:
    (policy,) = re.findall(r"```json\n(.*?)```", PAGES["aws"].text, re.DOTALL)
    assert lint({"deployer": policy}, tmp_path) == []
    given = {
        azure.ACR_PULL,
        azure.AKS_RBAC_CLUSTER_ADMIN,
        azure.NETWORK_CONTRIBUTOR,
        azure.READER,
        azure.STORAGE_BLOB_DATA_CONTRIBUTOR,
    }
    lists = re.findall(r"GuidEquals \{([^}]*)\}", PAGES["azure"].section("## Before"))
    roles = [set(found.split(", ")) for found in lists]
    assert roles == [given, given]
    enabled = [
        re.findall(r"gcloud services enable (.*?)```", page.text, re.DOTALL)
        for page in (PAGES["gcp"], CONFIGURATION)
    ]
    assert enabled[0] == enabled[1]
    assert len(enabled[0]) == 1


def test_commands_create_the_keys_of_the_stacks_where_the_stacks_are() -> None:
    platform = azure_platform("azure-prod")
    disks = new_cluster(platform.cluster).disk_encryption_set
    assert disks is not None
    _, _, _, _, group, *_, name = str(disks).split("/")
    command = f"disk-encryption-set create --name {name} --resource-group {group}"
    assert command in PAGES["azure"].text
    assert f"--location {platform.location}" in PAGES["azure"].text
    for stack in map(gcp_platform, ("gcp-dev", "gcp-prod")):
        for key in filter(None, (new_cluster(stack.cluster).secrets_key, stack.checkpoints.kms_key)):
            _, project, _, location, _, ring, _, name = str(key).split("/")
            command = f"keys create {name} --keyring {ring} --location {location} --purpose encryption --project {project}"
            assert command in PAGES["gcp"].text
        assert f"--location {stack.location}" in PAGES["gcp"].text


def test_a_role_in_a_vault_precedes_what_needs_it_on_azure() -> None:
    before = PAGES["azure"].section("## Before")
    role = before.index("Key Vault Crypto Officer")
    for key in ("holdfast", "checkpoints"):
        assert role < before.index(f"az keyvault key create --vault-name VAULT --name {key}")
    assert "signed-in-user" in before[role:].split("az keyvault key create")[0]
    assert before.index("az identity create") < before.rindex("Key Vault Crypto Service Encryption User")


def test_azcopy_gets_the_address_of_a_container() -> None:
    (command,) = re.findall(r'^azcopy list "\$\((.*)\)"$', PAGES["azure"].text, re.MULTILINE)
    variables = {"CHECKPOINT_URI": "abfss://vision@checkpoints0a1b2c3d.blob.core.windows.net"}
    address = subprocess.run(
        ["sh", "-c", command], env={**os.environ, **variables}, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert address == "https://checkpoints0a1b2c3d.blob.core.windows.net/vision"


@pytest.mark.parametrize("manifest", ["jobset-spot.yaml", "jobset-spot-gpu.yaml", "rayjob-spot.yaml"])
def test_examples_on_azure_keep_the_documented_grace_period(manifest: str) -> None:
    text = (ROOT / "examples/azure" / manifest).read_text("utf-8")
    assert all(yaml.safe_load_all(text))
    submit = PAGES["azure"].section("## Submit")
    (told,) = re.findall(r"`terminationGracePeriodSeconds` of (\d+) or less", submit)
    graces = {int(found) for found in re.findall(r"terminationGracePeriodSeconds: (\d+)", text)}
    assert graces
    assert max(graces) <= int(told)
    chapter = " ".join(OPERATIONS.section("## Azure").split())
    assert "10 is more than Azure often leaves" in chapter


def test_operations_on_azure_are_those_of_the_program() -> None:
    chapter = " ".join(OPERATIONS.section("## Azure").split())
    minutes = [round(math.sqrt(2 * seconds * 4 * 3600) / 60) for seconds in (60, 5)]
    assert "`√(2·C·T)`" in chapter
    told = f"{minutes[0]} minutes for 1 minute to write and an eviction every 4 hours, {minutes[1]} minutes for 5 seconds"
    assert told in chapter
    development = azure_platform("azure-dev")
    assert development.cluster.scaling is Scaling.NAP, "node auto-provisioning cannot be stopped"
    stopping = OPERATIONS.section("## Azure").partition("### A development stack on Azure")[2]
    for way in ("pulumi destroy -s azure-dev", "`scaling: fixed`", "azcopy copy"):
        assert way in stopping
    assert not development.protected
    (row,) = [row for row in CONFIGURATION.rows("## `cluster`") if row[0] == "systemNodes"]
    assert f"`{SYSTEM_TAINT.partition('=')[0]}`" in row[-1]


@pytest.mark.parametrize("seconds", [0, 30, 120])
def test_the_documented_grace_of_a_preempted_node_is_its_pools(seconds: int) -> None:
    users = grace_of_user_pods(seconds)
    (row,) = [row for row in OPERATIONS.rows("### A preempted node") if row[0].split("`")[0] == str(seconds)]
    assert row[1:] == [f"{users} s", f"{seconds - users} s"]


PAGES_WITH_LINKS = ("README.md", *(f"docs/{name}.md" for name in ("economics", "policies", "extending")))


def test_links_are_not_dead() -> None:
    others = [DocPage.read(path) for path in PAGES_WITH_LINKS]
    for page in (*PAGES.values(), OPERATIONS, CONFIGURATION, ADRS, *others):
        assert page.dead_links() == [], f"{page.path}: a link is dead"


def test_every_decision_is_in_the_table_of_decisions() -> None:
    written = {path.name for path in (ROOT / "docs" / "adr").glob("0*.md")}
    told = set(re.findall(r"\((0[^)]+\.md)\)", ADRS.text))
    assert told == written
