"""Invalid configurations of every cloud: each mistake is one problem with field, value, what is allowed, and the fix."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from pulumi_holdfast.config import versions
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.ladder.ladder import MOST_TIERS
from tests.support.builders.configurations import EXISTING_AZURE_NETWORK as AZURE_SUBNET
from tests.support.builders.configurations import (
    Document,
    aws_document,
    aws_problems,
    azure_problems,
    entry,
    fixed_document,
    gcp_document,
    gcp_problems,
    nap_document,
    platform_document,
    problems,
    read,
    section,
    tier,
)
from tests.support.invalid_configs import aws, azure, gcp, local
from tests.support.invalid_configs.mistakes import changed

PLATFORM = "holdfast:platform"
OLD_VERSION = "1.30"


class Kind(NamedTuple):
    """A kind of stack: builds a valid document with one change, and lists the problems of a document."""

    document: Callable[[Callable[[Document], object]], Document]
    problems: Callable[..., tuple[Problem, ...]]
    invalid: Mapping[str, tuple[Callable[[Document], object], str, str]]


KINDS = {
    "local": Kind(platform_document, problems, local.INVALID_CONFIGS),
    "aws": Kind(aws_document, aws_problems, aws.INVALID_CONFIGS),
    "azure-nap": Kind(nap_document, azure_problems, {**azure.INVALID_CONFIGS, **azure.INVALID_NAP_CONFIGS}),
    "azure-fixed": Kind(
        fixed_document, azure_problems, {**azure.INVALID_CONFIGS, **azure.INVALID_FIXED_CONFIGS}
    ),
    "gcp": Kind(gcp_document, gcp_problems, gcp.INVALID_CONFIGS),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def fields_of(found: tuple[Problem, ...]) -> set[str]:
    """The fields of problems, without the root of every path."""
    return {problem.field.removeprefix(PLATFORM) for problem in found}


@every_kind
def test_the_document_that_each_case_changes_is_valid(kind: str) -> None:
    document, problems_of, _ = KINDS[kind]
    assert not problems_of(document(lambda _: None)), "otherwise every case below reports another mistake too"


@pytest.mark.parametrize(("kind", "case"), [(kind, case) for kind in KINDS for case in KINDS[kind].invalid])
def test_one_mistake_is_one_problem_with_field_value_allowed_and_fix(kind: str, case: str) -> None:
    document, problems_of, invalid = KINDS[kind]
    change, field, fix = invalid[case]
    found = problems_of(document(change))
    assert [problem.field for problem in found] == [PLATFORM + field]
    assert fix in found[0].fix
    assert found[0].value
    assert found[0].allowed
    assert len(str(found[0])) < 700


@every_kind
def test_a_ladder_with_more_tiers_than_the_api_server_checks_is_refused(kind: str) -> None:
    document, problems_of, _ = KINDS[kind]
    tiers = [{"pool": f"p{number}"} for number in range(MOST_TIERS + 1)]
    (problem,) = problems_of(document(changed(".namespaces[0]", ladder=tiers)))
    assert problem.field == f"{PLATFORM}.namespaces[0].ladder"
    assert f"up to {MOST_TIERS}" in problem.allowed


@pytest.mark.parametrize(
    ("kind", "settings", "key", "fixes"),
    [
        ("aws", {"region": None}, "aws:region", "`aws:region: us-east-1`"),
        ("aws", {"region": "us-west-9"}, "aws:region", ""),
        ("aws", {"region": "us-west-2a"}, "aws:region", ""),
        ("aws", {"region": ""}, "aws:region", ""),
        ("aws", {"region": "US-WEST-2"}, "aws:region", ""),
        ("gcp", {"project": None}, "gcp:project", "`gcp:project: my-project`"),
        ("gcp", {"project": "123456789012"}, "gcp:project", "`gcloud projects describe 123456789012`"),
        ("gcp", {"project": "My Project"}, "gcp:project", "not the name"),
        ("gcp", {"region": None}, "gcp:region", "`gcp:region: us-central1`"),
        ("gcp", {"region": "us-central1-a"}, "gcp:region", 'Write "us-central1".'),
        ("gcp", {"region": "us-centrall"}, "gcp:region", 'Write "us-central1".'),
        ("gcp", {"region": "mars"}, "gcp:region", "`gcp:region: us-central1`"),
        ("azure-nap", {"location": None}, "azure-native:location", "`azure-native:location: eastus2`"),
        ("azure-nap", {"location": "East US 2"}, "azure-native:location", 'Write "eastus2".'),
        ("azure-nap", {"location": "eastsu2"}, "azure-native:location", 'Write "eastus2".'),
        ("azure-nap", {"location": "us-central1"}, "azure-native:location", "Write "),
        ("azure-nap", {"location": "mars"}, "azure-native:location", "`azure-native:location: eastus2`"),
        ("azure-nap", {"subscription": "my-subscription"}, "azure-native:subscriptionId", "`az account show --query id`"),
        ("azure-nap", {"tenant": "example.com"}, "azure-native:tenantId", "`az account show --query tenantId`"),
    ],
)  # fmt: skip
def test_a_wrong_provider_setting_is_one_problem_of_its_key(
    kind: str, settings: dict[str, str | None], key: str, fixes: str
) -> None:
    document, problems_of, _ = KINDS[kind]
    (problem,) = problems_of(document(lambda _: None), **settings)
    assert problem.field == key
    assert fixes in problem.fix
    assert problem.allowed


@pytest.mark.parametrize(
    ("kind", "setting", "key"),
    [
        ("aws", {"region": "us-west-9"}, "aws:region"),
        ("azure-nap", {"location": "mars"}, "azure-native:location"),
        ("azure-fixed", {"location": "mars"}, "azure-native:location"),
        ("gcp", {"region": "mars"}, "gcp:region"),
    ],
)
def test_a_wrong_region_hides_no_other_mistake_of_the_shape(
    kind: str, setting: dict[str, str], key: str
) -> None:
    document, problems_of, _ = KINDS[kind]
    found = problems_of(
        document(
            lambda d: (
                entry(d, "pools", 0).pop("name"),
                section(d, "cluster").update(version=float(OLD_VERSION)),
            )
        ),
        **setting,
    )
    assert fields_of(found) == {key, ".pools[0].name", ".cluster.version"}


@pytest.mark.parametrize(
    ("kind", "cases", "fields"),
    [
        # Which pool is the default depends on the machines of all: while those of one are wrong, that rule does not run.
        ("aws", ("an administrator twice", "a private block for a public endpoint", "a family with a typo", "no default pool"), {".cluster.publicAccessCidrs[0]", ".cluster.admins[1]", ".pools[1].families[1]"}),
        ("azure-nap", ("no access", "a pod range within the node range", "a VM size with a typo", "a namespace of AKS"), {".cluster.access", ".network.podsCidr", ".pools[0].vmSizes[0]", ".namespaces[0].name"}),
        ("gcp", ("no access", "an Arm machine", "versions in real folders", "ranges that overlap"), {".cluster.access", ".pools[1].machineType", ".checkpoints.recovery", ".network.servicesCidr"}),
        ("aws", ("a single system node", "a VPC with zones", "a volume that is too small", "no default pool"), {".cluster.systemNodes.count", ".network.zones", ".pools[2].diskGiB"}),
        ("azure-nap", ("checkpoints kept for longer than a year", "a price cap as in Determined", "no access"), {".checkpoints.retainDays", ".pools[1].spot_max_price"}),
        ("gcp", ("several machine types", "an invalid key name", "no access"), {".pools[1].machineType", ".cluster.secretsKey"}),
    ],
)  # fmt: skip
def test_one_run_reports_all_mistakes_of_its_phase(
    kind: str, cases: tuple[str, ...], fields: set[str]
) -> None:
    document, problems_of, invalid = KINDS[kind]

    def change(found: Document) -> None:
        for case in cases:
            invalid[case][0](found)

    assert fields_of(problems_of(document(change))) == fields


def test_rules_run_when_the_shape_is_right() -> None:
    def against_rules(document: Document) -> None:
        entry(document, "namespaces", 1).update(name="default")
        tier(document, 0, 1).update(pool="a10")
        document.update(cluster={"version": OLD_VERSION})

    def misshapen(document: Document) -> None:
        against_rules(document)
        entry(document, "pools", 1).update(capacity="spt")
        tier(document, 0, 0).update(procurementTimeout="15")

    shape = {".pools[1].capacity", ".namespaces[0].ladder[0].procurementTimeout"}
    assert fields_of(problems(platform_document(misshapen))) == shape
    rules = {".namespaces[1].name", ".namespaces[0].ladder[1].pool", ".cluster.version"}
    assert fields_of(problems(platform_document(against_rules))) == rules


@pytest.mark.parametrize("document", [None, "local", [], 7])
def test_a_missing_document_is_a_problem_of_the_whole_configuration(document: JsonValue) -> None:
    (problem,) = problems(document)
    assert problem.field == PLATFORM
    assert "stacks/Pulumi.local.yaml" in problem.fix


def test_a_pool_that_cannot_be_parsed_is_not_missing_from_ladders() -> None:
    found = problems(platform_document(lambda d: entry(d, "pools", 2).update(maxNodes="many")))
    assert fields_of(found) == {".pools[2].maxNodes"}


def test_a_quota_is_not_compared_with_pools_that_cannot_be_parsed() -> None:
    def change(document: Document) -> None:
        entry(document, "namespaces", 0).update(quota={"gpus": 0})
        for index in (2, 3):
            entry(document, "pools", index).update(maxNodes=0)

    fields = {problem.field.rpartition(".")[2] for problem in problems(platform_document(change))}
    assert fields == {"maxNodes"}


def test_each_problem_is_one_short_line() -> None:
    (problem,) = problems(platform_document(lambda d: d.update(mirror="x" * 500)))
    assert len(problem.value) < 100
    found = problems(platform_document(lambda d: (d.pop("pools"), entry(d, "namespaces", 0).pop("name"))))
    assert all("\n" not in str(problem) for problem in found)
    assert len(found) == 2


def test_a_local_stack_defaults_to_the_paths_of_a_checkout() -> None:
    platform = read(platform_document())
    assert platform.cluster.kubeconfig == ".rehearsal/local/kubeconfig"
    assert platform.mirror.charts == ".tools/charts"
    assert platform.cluster.system_nodes == 1


VALID: Mapping[str, tuple[str, Callable[[Document], object]]] = {
    "aws: a public endpoint for the whole internet, confirmed": ("aws", changed(".cluster", publicAccessCidrs=["0.0.0.0/0"], allowPublicAccessFromAnywhere=True)),
    "gcp: an endpoint for the whole internet, confirmed": ("gcp", changed(".cluster", access={"dnsEndpoint": {"allowExternal": True}})),
    "gcp: a ladder of compute classes, each of one capacity type": ("gcp", lambda d: [changed(".pools[2]", computeClass="a100-spot")(d), changed(".pools[3]", computeClass="a100")(d)]),
    "azure: a private cluster": ("azure-nap", changed(".cluster", access={"private": True})),
    "azure: a private cluster in an existing subnet, without egressCidrs": ("azure-nap", lambda d: [changed(".cluster", access={"private": True, "publicName": True})(d), d.update(network={"subnetId": AZURE_SUBNET["subnetId"]})]),
    "azure: patch upgrades, without upgrades of the node OS": ("azure-nap", changed(".cluster", upgrades={"cluster": "patch", "nodeOs": "None"})),
    "azure: a federated token": ("azure-nap", changed(".cluster", login="workloadidentity")),
    "azure: a small network": ("azure-nap", changed("", network={"cidr": "10.40.0.0/24", "servicesCidr": "10.41.0.0/28"})),
    **{f"azure: a price cap of {cap}": ("azure-fixed", changed(".pools[1]", spotMaxPrice=cap)) for cap in (-1, -1.0, 0.00001, 12, 3.06)},
    **{f"{kind}: the version that this release installs": (kind, changed(".cluster", version=versions.KUBERNETES)) for kind in KINDS},
}  # fmt: skip


@pytest.mark.parametrize("case", VALID)
def test_a_valid_choice_causes_no_problem(case: str) -> None:
    kind, change = VALID[case]
    document, problems_of, _ = KINDS[kind]
    assert not problems_of(document(change))


def test_capacity_types_are_not_mixed_in_a_compute_class() -> None:
    def change(document: Document) -> None:
        for index in (2, 3):
            changed(f".pools[{index}]", computeClass="a100")(document)

    fields = [problem.field.removeprefix(PLATFORM) for problem in gcp_problems(gcp_document(change))]
    assert fields == [".pools[3].computeClass", ".namespaces[0].ladder"]


@pytest.mark.parametrize("order", [(2, 3), (3, 2)])
def test_two_pools_of_a_compute_class_are_one_tier(order: tuple[int, int]) -> None:
    def change(document: Document) -> None:
        for index in order:
            changed(f".pools[{index}]", computeClass="any", capacity="on-demand")(document)

    (problem,) = gcp_problems(gcp_document(change))
    assert problem.field == f"{PLATFORM}.namespaces[0].ladder", "a job that moves would stay on its nodes"
    assert "a100-spot, a100" in problem.value


def test_a_blue_green_upgrade_needs_addresses_for_a_second_set_of_nodes() -> None:
    def change(document: Document) -> None:
        section(document, "network").update(podsCidr="10.44.0.0/18")
        changed(".pools[0]", maxNodes=30)(document)

    assert not gcp_problems(gcp_document(change))
    (problem,) = gcp_problems(
        gcp_document(lambda d: (change(d), changed(".pools[0]", upgrades="blue-green")(d)))
    )
    assert problem.field == f"{PLATFORM}.network.podsCidr"


def test_subscription_and_tenant_default_to_those_of_the_credentials() -> None:
    assert not azure_problems(nap_document(), subscription=None, tenant=None)


def test_a_price_cap_on_node_auto_provisioning_is_rejected_with_the_alternatives() -> None:
    (problem,) = azure_problems(nap_document(changed(".pools[1]", spotMaxPrice=0.5)))
    assert "−1, up to the on-demand price" in problem.allowed
    for part in ("scaling: fixed", "procurementTimeout"):
        assert part in problem.fix, "a user who has a cap elsewhere learns what to use instead"


def test_autoscaled_scale_sets_beside_node_auto_provisioning_are_rejected_with_the_reason() -> None:
    (problem,) = azure_problems(nap_document(changed(".cluster", scaling="both")))
    assert "no autoscaled scale sets beside node auto-provisioning" in problem.allowed


@pytest.mark.parametrize("kind", ["azure-nap", "azure-fixed"])
def test_a_typo_in_scaling_causes_no_problem_of_a_pool(kind: str) -> None:
    document = KINDS[kind].document(changed(".cluster", scaling="Scalesets"))
    assert fields_of(azure_problems(document)) == {".cluster.scaling"}


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        (changed(".pools[0]", zones=[1, 2]), {".pools[0].zones"}),
        (changed(".checkpoints", redundancy="Standard_ZRS"), {".checkpoints.redundancy"}),
        (changed(".checkpoints", redundancy="Standard_LRS"), set[str]()),
    ],
)
def test_a_location_without_zones_takes_no_zones(
    change: Callable[[Document], object], fields: set[str]
) -> None:
    document = nap_document(lambda d: (change(d), d.update(pools=[entry(d, "pools", 0)], namespaces=[])))
    assert fields_of(azure_problems(document, location="westcentralus")) == fields


def test_a_vm_size_of_another_location_is_not_reported_as_a_typo() -> None:
    change = changed(".pools[2]", vmSizes=["Standard_NC24ads_A100_v4"])
    found = azure_problems(nap_document(change), location="westcentralus")
    (problem,) = [one for one in found if one.field == f"{PLATFORM}.pools[2].vmSizes[0]"]
    assert "which westcentralus does not offer" in problem.value
    assert "azure-native:location" in problem.fix
