"""What only a project knows: how it is asked, what is refused because of it, and what is only said."""

import json
from collections.abc import Callable, Generator
from pathlib import Path
from string import ascii_letters, digits

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.config.naming import gke_cluster_name, gke_environment
from pulumi_holdfast.gcp.config.sections import GcpPlatform
from pulumi_holdfast.gcp.preflight.checks import (
    Project,
    SubnetworkRanges,
    preflight_problems,
    preflight_warnings,
)
from pulumi_holdfast.gcp.preflight.queries import ProjectQueries
from pulumi_holdfast.gcp.preflight.quotas import zones_of_cluster
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.ladder import is_dns_label
from pulumi_holdfast.stack_program import run
from tests.support.builders.configurations import (
    GCP_KEY,
    GCP_PROJECT,
    GCP_REGION,
    Document,
    gcp_document,
    gcp_platform,
    kubernetes_minor,
    section,
)
from tests.support.fakes.gcp_project import (
    AGENT,
    BUCKETS,
    NEWEST,
    NUMBER,
    PROJECT_DATA,
    QUOTAS,
    STORAGE_AGENT,
    SUBNETWORK,
    TYPES,
    VERSIONS,
    ZONE_NAMES,
    ZONES,
    answers,
    asked,
    project,
)
from tests.support.fakes.pulumi_engine import asking_component
from tests.support.invalid_configs.mistakes import changed

PLATFORM = "holdfast:platform"
STACKS = st.text(f"{ascii_letters}{digits}_.-", min_size=1, max_size=100)
CPUS = frozenset({"e2-standard-4", "n2-standard-4", "n2-standard-16"})
WITH_A100 = CPUS | {"a2-highgpu-8g"}


def refused(platform: GcpPlatform, found: Project) -> list[str]:
    return [problem.field.removeprefix(PLATFORM) for problem in preflight_problems(platform, found)]


def test_a_project_with_everything_causes_no_problem_and_no_warning() -> None:
    assert not refused(gcp_platform(), project())
    assert not list(preflight_warnings(gcp_platform(), project()))


def test_a_channel_without_the_version_is_a_problem_that_names_others() -> None:
    platform = gcp_platform(lambda d: section(d, "cluster").update(channel="stable"))
    (problem,) = preflight_problems(platform, project())
    assert problem.field == f"{PLATFORM}.cluster.channel"
    assert f"{kubernetes_minor(-1)}.8-gke.1225000" in problem.value
    assert "rapid, regular, extended" in problem.allowed
    (problem,) = preflight_problems(
        gcp_platform(lambda d: section(d, "cluster").update(version="1.99")), project()
    )
    assert "none yet" in problem.allowed, "another channel would not help"


ZONAL: Document = {"access": {"authorizedNetworks": ["10.0.0.0/8"]}, "location": "us-central1-f"}
NO_SYSTEM_NODES = dict.fromkeys(ZONES, WITH_A100) | {"us-central1-c": WITH_A100 - {"e2-standard-4"}}


@pytest.mark.parametrize(
    ("change", "found", "field", "reason"),
    [
        (changed(".pools[2]", zones=["us-central1-f"]), project(zones=ZONES[:3]), ".pools[2].zones[0]", "its nodes would have no place"),
        (changed(".pools[2]", zones=["us-central1-f"]), project(zones=ZONES[1:]), ".cluster.zones[0]", "nor those of the system"),
        (changed("", cluster=ZONAL), project(zones=ZONES[:3], cluster_zones=("us-central1-f",)), ".cluster.location", "the control plane has no place"),
        (changed(""), project(offered=NO_SYSTEM_NODES), ".cluster.zones", "the cluster would have no services"),
    ],
)  # fmt: skip
def test_a_zone_that_the_project_lacks_is_a_problem(
    change: Callable[[Document], object], found: Project, field: str, reason: str
) -> None:
    assert refused(gcp_platform(change), found) == [field], reason


def test_a_pool_with_a_zone_without_its_machine_is_a_problem_that_names_other_zones() -> None:
    offered = dict.fromkeys(ZONES, WITH_A100) | {"us-central1-b": CPUS}
    (problem,) = preflight_problems(gcp_platform(), project(offered=offered))
    assert problem.field == f"{PLATFORM}.pools[3].zones"
    assert "us-central1-b" in problem.value
    assert "`zones: [us-central1-a, us-central1-c]`" in problem.fix


def test_a_machine_in_none_of_the_zones_is_a_problem_that_names_its_zones() -> None:
    offered = dict.fromkeys(ZONES, CPUS) | {"us-central1-f": WITH_A100}
    problems = list(preflight_problems(gcp_platform(), project(offered=offered)))
    assert [problem.field for problem in problems] == [
        f"{PLATFORM}.pools[2].machineType",
        f"{PLATFORM}.pools[3].machineType",
    ]
    assert "`zones: [us-central1-f]`" in problems[0].fix
    (problem, _) = preflight_problems(gcp_platform(), project(offered=dict.fromkeys(ZONES, CPUS)))
    assert "gcloud compute machine-types list" in problem.fix, "no zone of the region would help"


EXISTING = SubnetworkRanges(nodes="10.40.0.0/20", pods="10.44.0.0/14", services="10.40.16.0/20")


@pytest.mark.parametrize(
    ("network", "fields", "reason"),
    [
        ({}, [], "the ranges of the subnetwork stay"),
        ({"cidr": "10.40.0.0/19", "servicesCidr": "10.40.64.0/20"}, [".network.servicesCidr"], "a larger range is an update in place"),
        ({"cidr": "10.40.0.0/21"}, [".network.cidr"], "a smaller one replaces the subnetwork and the cluster"),
        ({"cidr": "10.41.0.0/20"}, [".network.cidr"], "and so does a moved one"),
        ({"podsCidr": "10.48.0.0/14"}, [".network.podsCidr"], "the plan looks harmless, and Google rejects it"),
    ],
)  # fmt: skip
def test_ranges_of_an_existing_cluster_only_grow(network: Document, fields: list[str], reason: str) -> None:
    platform = gcp_platform(lambda d: d.update(network=network))
    assert refused(platform, project(subnetwork=EXISTING)) == fields, reason
    assert not refused(platform, project())


@pytest.mark.parametrize("hierarchical", [False, True])
def test_another_namespace_of_the_bucket_is_a_problem(*, hierarchical: bool) -> None:
    platform = gcp_platform(lambda d: section(d, "checkpoints").update(hierarchical=hierarchical))
    (problem,) = preflight_problems(platform, project(buckets={"checkpoints-bucket-1": not hierarchical}))
    assert problem.field == f"{PLATFORM}.checkpoints.hierarchical", "the update would replace the bucket"
    assert f"`hierarchical: {str(not hierarchical).lower()}`" in problem.fix
    both = {"checkpoints-bucket-1": True, "checkpoints-bucket-2": False}
    assert not refused(platform, project(buckets=both))


def test_what_an_earlier_update_created_is_found_by_name_and_label() -> None:
    ranges: Json = {"ipCidrRange": EXISTING.nodes, "secondaryIpRanges": [
        {"rangeName": "pods", "ipCidrRange": EXISTING.pods},
        {"rangeName": "services", "ipCidrRange": EXISTING.services},
    ]}  # fmt: skip
    asked_names: list[object] = []
    of_stack = {
        name: {"labels": {"holdfast-stack": stack}, "name": name}
        for name, stack in (("mine", "gcp-dev"), ("other", "gcp-prod"))
    }
    bucket: Json = dict.fromkeys(("location", "selfLink", "storageClass"), "")

    def answer(token: str, arguments: Json) -> Json:
        if token == SUBNETWORK:
            asked_names.append(arguments["name"])
            return ranges
        if token == BUCKETS:
            return {"buckets": [{**bucket, **each} for each in of_stack.values()]}
        if token == "gcp:storage/getBucket:getBucket":
            asked_names.append(arguments["name"])
            return {"hierarchicalNamespaces": [{"enabled": True}]}
        return answers(token, arguments)

    found = lookups(answer)
    assert found.subnetwork == EXISTING
    assert found.buckets == {"mine": True}
    assert asked_names == ["holdfast-gcp-dev-nodes", "mine"]


def test_a_stack_without_a_subnetwork_causes_no_warning() -> None:
    def answer(token: str, arguments: Json) -> Json:
        if token == SUBNETWORK:
            raise PermissionError("projects/p/regions/r/subnetworks/holdfast-gcp-dev-nodes not found")
        return answers(token, arguments)

    found = lookups(answer)
    assert found.subnetwork is None
    assert not found.failed_queries


def test_failed_queries_cause_one_warning_and_no_problem() -> None:
    found = project(
        zones=None, offered={}, newest={}, failed_queries=("compute.zones.list: denied", "x: denied")
    )
    assert not refused(gcp_platform(), found)
    (warning,) = preflight_warnings(gcp_platform(), found)
    assert "compute.zones.list: denied; x: denied" in warning
    assert "\n" not in warning


def anywhere(**cluster: str) -> GcpPlatform:
    return gcp_platform(lambda d: (section(d, "cluster").pop("zones"), section(d, "cluster").update(cluster)))


def test_nodes_are_in_the_configured_zones_or_those_of_the_control_plane() -> None:
    assert zones_of_cluster(gcp_platform(), ZONES[1:]) == ZONES[:3]
    zonal = zones_of_cluster(anywhere(location="us-central1-f"), ZONES)
    assert zonal == ("us-central1-f",)
    assert zones_of_cluster(anywhere(), ZONES[1:]) == ZONES[1:], "always the same, or the plan would change"
    assert zones_of_cluster(anywhere(), None) == ZONES[:3]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gcp_dev", "gcp-dev"),
        ("GCP-dev", "gcp-dev"),
        ("gcp.dev", "gcp-dev"),
        ("a" * 41, "a" * 42),
        ("_", "__"),
    ],
)
def test_similar_stack_names_share_no_identity(one: str, other: str) -> None:
    assert gke_environment(one) != gke_environment(other), "the one could read the other's checkpoints"


@given(STACKS, st.integers(14, 63))
def test_an_identity_respects_its_length_limit(stack: str, longest: int) -> None:
    name = gke_environment(stack, longest)
    assert is_dns_label(name)
    assert len(name) <= longest


@pytest.mark.parametrize(("one", "other"), [("gcp.dev", "gcp-dev"), ("a" * 32, "a" * 33), ("-a", "a")])
def test_similar_stack_names_make_different_cluster_names(one: str, other: str) -> None:
    assert gke_cluster_name(one) != gke_cluster_name(other), "one would find the other's in its place"


@pytest.fixture
def _no_configuration_is_left_behind() -> Generator[None]:
    yield
    pulumi.runtime.set_all_config({})


def attempt(*, check_access: bool) -> str:
    """Run the program of a GCP stack in a project that answers nothing. Returns its refusal."""
    pulumi.runtime.set_all_config(
        {
            "gcp:project": GCP_PROJECT,
            "gcp:region": GCP_REGION,
            # Outside of a rehearsal an address of documentation is refused.
            "holdfast:platform": json.dumps(gcp_document()).replace("203.0.113.", "81.2.69."),
        }
    )
    refusals_seen: list[str] = []

    def run_it() -> None:
        try:
            run(check_access=check_access)
        except pulumi.RunError as refusal:
            refusals_seen.append(str(refusal))

    asked(run_it, silent_about(PROJECT_DATA))
    return refusals_seen[0]


@pytest.mark.usefixtures("_no_configuration_is_left_behind")
def test_pulumi_up_fails_without_the_plugin_before_any_query(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert attempt(check_access=True).startswith("gke-gcloud-auth-plugin: got no such command")
    plugin = tmp_path / "gke-gcloud-auth-plugin"
    plugin.touch(mode=0o755)
    assert attempt(check_access=True).startswith("Google Cloud credentials")


@pytest.mark.usefixtures("_no_configuration_is_left_behind")
def test_a_rehearsal_needs_no_plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert attempt(check_access=False).startswith("Google Cloud credentials")


def lookups(answer: Callable[[str, Json], Json] = answers, platform: GcpPlatform | None = None) -> Project:
    found: list[Project] = []
    asked(
        lambda: found.append(
            ProjectQueries(platform or gcp_platform(), "gcp-dev", parent=asking_component()).project()
        ),
        answer,
    )
    return found[0]


def silent_about(*tokens: str) -> Callable[[str, Json], Json]:
    def answer(token: str, arguments: Json) -> Json:
        if token in tokens:
            raise PermissionError("googleapi: Error 403: you may not ask")
        return answers(token, arguments)

    return answer


def test_query_results_become_typed_values() -> None:
    found = lookups()
    assert found.number == NUMBER
    assert found.zones == ZONES
    assert found.cluster_zones == ZONES[:3]
    assert found.offered["us-central1-f"] == WITH_A100
    assert found.newest == NEWEST
    assert not found.failed_queries


def test_queries_use_the_stacks_project_and_location() -> None:
    asked_for: list[tuple[str, object, object]] = []

    def answer(token: str, arguments: Json) -> Json:
        place = arguments.get("region") or arguments.get("location") or arguments.get("zone")
        named = arguments.get("project") or arguments.get("projectId") or arguments.get("parent")
        asked_for.append((token, str(named).removeprefix("projects/"), place))
        return answers(token, arguments)

    lookups(answer)
    assert {project_id for _, project_id, _ in asked_for} == {GCP_PROJECT}
    places = {(token, place) for token, _, place in asked_for}
    assert places == {
        (PROJECT_DATA, None),
        (ZONE_NAMES, GCP_REGION),
        (VERSIONS, GCP_REGION),
        (SUBNETWORK, GCP_REGION),
        (BUCKETS, None),
        (QUOTAS, None),
        *((TYPES, zone) for zone in ZONES),
    }


def test_the_storage_agent_is_queried_if_there_is_a_key() -> None:
    tokens: list[str] = []

    def answer(token: str, arguments: Json) -> Json:
        tokens.append(token)
        return answers(token, arguments)

    platform = gcp_platform(lambda d: section(d, "checkpoints").update(kmsKey=GCP_KEY))
    assert lookups(answer, platform).storage_agent == AGENT
    assert STORAGE_AGENT in tokens
