"""A stack whose jobs cannot fall back is refused by the program itself, with or without the policy pack."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pulumi
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.aws.pools import pool_summaries as aws_pools
from pulumi_holdfast.azure.pools import pool_summaries as azure_pools
from pulumi_holdfast.config.namespace import NamespaceSection
from pulumi_holdfast.config.reachability import pool_facts, reachability_problems, reachability_warnings
from pulumi_holdfast.gcp.pools import pool_summaries as gcp_pools
from pulumi_holdfast.kubernetes.fallback_policy import facts_object
from pulumi_holdfast.ladder.labels import INSTANCE_TYPE, ZONE, CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.reachability.checks import Failed, check_pool
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.reachability.pool_summary import summarize_pool
from pulumi_holdfast.ladder.reachability.shape import LEAST, Resources, Shape
from pulumi_holdfast.local.training_cluster import pool_summaries as local_pools
from pulumi_holdfast.program.namespaces.ladders import is_fallback_policy
from pulumi_holdfast.program.resources import Stack
from pulumi_holdfast.stack_program import load_platform, run
from rules.reachability import find_notes, find_unreachable
from tests.support.builders.configurations import entry, platform_document
from tests.support.builders.policy_programs import STACKS, program
from tests.support.doc_pages import ROOT
from tests.support.fakes.pulumi_engine import record
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from pulumi_holdfast.clouds import Platform
    from pulumi_holdfast.ladder.json import JsonValue
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary
    from pulumi_holdfast.program.resources import StackResource
    from tests.support.builders.configurations import Document


@pytest.fixture(autouse=True)
def _no_configuration_is_left_behind() -> Generator[None]:
    yield
    pulumi.runtime.set_all_config({})


def refusal(document: Document) -> str:
    """The message with which the program refuses a document, before it registers anything."""
    pulumi.runtime.set_all_config({"holdfast:platform": json.dumps(document)})
    refusals: list[str] = []

    def attempt() -> None:
        try:
            run()
        except pulumi.RunError as error:
            refusals.append(str(error))

    recording = record(attempt)
    assert not recording.resources, "a half-made stack would have to be cleaned up by hand"
    assert len(refusals) == 1
    return refusals[0]


def with_namespace(**fields: JsonValue) -> Document:
    return platform_document(lambda d: entry(d, "namespaces", 0).update(fields))


@pytest.mark.parametrize(
    ("fields", "field", "fix"),
    [
        (
            {"shapes": [{"name": "wide", "pods": 40, "cpu": 48, "gpus": 8}]},
            "shapes[0]: got shape wide",
            "Raise `maxNodes` to 40 or more",
        ),
        (
            {"shapes": [{"name": "fits", "gpus": 1}, {"name": "large", "memory": "4Ti"}]},
            "shapes[1]: got shape large",
            "add machine types that have as much to the pool",
        ),
        (
            {"shapes": [{"name": "h100", "gpus": 1, "accelerator": "h100"}]},
            "shapes[0]: got shape h100",
            "Add machine types with h100 to the pool",
        ),
        (
            {"shapes": [{"name": "near", "gpus": 1, "selector": {"example.com/team": "vision"}}]},
            "shapes[0]: got shape near",
            "Remove example.com/team from the job",
        ),
        (
            {"shapes": [{"name": "arm", "gpus": 1, "architectures": ["arm64"]}]},
            "shapes[0]: got shape arm",
            "Add machine types of that architecture to the pool",
        ),
        (
            {"shapes": [{"name": "fast", "gpus": 1, "devices": {"rdma/ib": 1}}]},
            "shapes[0]: got shape fast",
            "add machine types that have as much to the pool",
        ),
    ],
    ids=["gang", "pod", "accelerator", "selector", "architecture", "device"],
)
def test_a_stack_whose_jobs_cannot_fall_back_is_refused_before_its_first_resource(
    fields: dict[str, JsonValue], field: str, fix: str
) -> None:
    message = refusal(with_namespace(**fields))
    assert f"holdfast:platform.namespaces[0].{field}" in message
    assert "; allowed: jobs that reach an on-demand pool" in message
    assert fix in message


def test_a_machine_type_that_a_larger_one_dominates_can_be_selected() -> None:
    """The API server reads only types that no other one dominates; the program knows them all."""
    machines = [machine_catalogue("local")[name] for name in ("m7i.large", "m7i.4xlarge")]
    pool = Pool(name="cpu", capacity=CapacityType.ON_DEMAND, has_gpus=False, max_nodes=4)
    facts = pool_facts("cpu", summarize_pool(pool, machines, (), provisioner=Provisioner.LOCAL))
    small = Shape(requests=Resources(cpu_millis=1000, memory_mib=1024), selector={INSTANCE_TYPE: "m7i.large"})
    assert not check_pool(small, facts)


def test_the_shape_that_policies_assume_is_checked_for_a_namespace_without_shapes() -> None:
    document = with_namespace(shapes=[])
    entry(document, "pools", 3).update(instanceTypes=["g6.12xlarge"])
    assert "holdfast:platform.namespaces[0].ladder: got shape default" in refusal(document)


def summaries(platform: Platform) -> Mapping[str, PoolSummary]:
    match platform.cloud:
        case "local":
            return local_pools(platform)
        case "aws":
            return aws_pools(platform)
        case "azure":
            return azure_pools(platform)
        case "gcp":
            return gcp_pools(platform)


@cache
def platform_of(stack: str) -> Platform:
    return load_platform(ROOT / "stacks" / f"Pulumi.{stack}.yaml")


@pytest.mark.parametrize("stack", STACKS)
def test_every_stack_of_the_repository_is_accepted(stack: str) -> None:
    platform = platform_of(stack)
    assert not list(reachability_problems(platform.namespaces, summaries(platform)))


@pytest.mark.parametrize(
    ("stack", "there", "elsewhere"),
    [
        ("aws-prod", "us-west-2a", "us-west-2d"),
        ("gcp-prod", "us-central1-a", "us-central1-d"),
        ("azure-prod", "{location}-1", "{location}-4"),
    ],
)
def test_a_zone_that_no_pool_of_the_ladder_is_in_is_refused(stack: str, there: str, elsewhere: str) -> None:
    platform = platform_of(stack)
    location = platform.location if platform.cloud == "azure" else ""
    pool = summaries(platform)["cpu"]
    facts = obj(facts_object(pool)["labelValues"])
    assert there.format(location=location) in str(facts[ZONE])
    zoned = [
        check_pool(
            Shape(requests=LEAST, selector={ZONE: zone.format(location=location)}), pool_facts("cpu", pool)
        )
        for zone in (there, elsewhere)
    ]
    assert not zoned[0]
    (failed,) = zoned[1]
    assert isinstance(failed, Failed)
    assert f"Remove {ZONE} from the job" in failed.fix


@pytest.mark.parametrize(("zone", "is_refused"), [("us-west-2a", False), ("us-west-2b", True)])
def test_a_volume_in_a_zone_without_on_demand_capacity_is_refused(zone: str, is_refused: bool) -> None:
    platform = platform_of("aws-data")
    bound = {"vision": {"scratch": zone}}
    found = [*reachability_problems(platform.namespaces, summaries(platform), bound)]
    assert [problem.field for problem in found] == (
        ["holdfast:platform.namespaces[0].shapes[0]"] if is_refused else []
    )
    for problem in found:
        assert "finetune with scratch" in problem.value
        assert zone in problem.value


SHAPES = st.fixed_dictionaries(
    {
        "name": st.just("drawn"),
        "pods": st.integers(1, 80),
        "cpu": st.integers(1, 200).map(str),
        "memory": st.integers(1, 4000).map(lambda gib: f"{gib}Gi"),
        "gpus": st.sampled_from([0, 0, 1, 4, 8, 16]),
    }
)


@pytest.mark.parametrize("stack", ["local", "aws-prod", "azure-prod", "gcp-prod"])
@given(shape=SHAPES)
@settings(max_examples=15)
def test_the_program_refuses_exactly_what_the_pack_proves_wrong(
    stack: str, shape: dict[str, JsonValue]
) -> None:
    platform = platform_of(stack)
    drawn = [
        NamespaceSection.model_validate_json(
            json.dumps(namespace.model_dump(mode="json", by_alias=True) | {"shapes": [shape]})
        )
        for namespace in platform.namespaces
    ]
    refused = {problem.field for problem in reachability_problems(drawn, summaries(platform))}
    proven = {finding.urn for finding in find_unreachable(Stack(with_shape(program(stack), shape)), {})}
    ladders = {
        str(obj(each.props["metadata"])["namespace"]): each.urn
        for each in program(stack)
        if is_fallback_policy(each.type)
    }
    for index, namespace in enumerate(drawn):
        in_program = f"holdfast:platform.namespaces[{index}].shapes[0]" in refused
        assert in_program == (ladders[namespace.name] in proven), (
            f"{namespace.name}: the program and the pack disagree"
        )


def with_shape(resources: Sequence[StackResource], shape: dict[str, JsonValue]) -> list[StackResource]:
    """The resources, with this one shape in each ladder."""
    return [
        replace(each, props={**each.props, "spec": {**obj(each.props["spec"]), "shapes": [shape]}})
        if is_fallback_policy(each.type)
        else each
        for each in resources
    ]


@pytest.mark.parametrize(
    ("stack", "tier", "max_price", "words"),
    [
        ("aws-prod", 0, 0.01, "is below what each of its machine types costs ("),
        ("aws-prod", 0, 1000.0, None),
        ("gcp-prod", 0, 0.01, None),
    ],
    ids=["never met", "met", "a cloud without prices"],
)
def test_a_tier_that_max_price_leaves_without_capacity_is_reported_in_the_same_words_by_program_and_pack(
    stack: str, tier: int, max_price: float, words: str | None
) -> None:
    platform, capped = platform_of(stack), list[NamespaceSection]()
    for namespace in platform.namespaces:
        document = namespace.model_dump(mode="json", by_alias=True)
        ladder = document["ladder"]
        ladder[tier] = {**ladder[tier], "maxPrice": max_price}
        capped.append(NamespaceSection.model_validate_json(json.dumps(document)))
    said = list(reachability_warnings(capped, summaries(platform), platform.cloud))
    capped_program = Stack(with_max_price(program(stack), tier, max_price))
    noted = [each.message for each in find_notes(capped_program, {})]
    assert sorted(said) == sorted(each for each in noted if "maxPrice" in each)
    assert bool(said) is (words is not None)
    assert all(words is not None and words in each for each in said)
    assert not set(find_unreachable(capped_program, {})) - set(find_unreachable(Stack(program(stack)), {}))


def with_max_price(stack: Sequence[StackResource], tier: int, max_price: float) -> Sequence[StackResource]:
    """The stack with a limit on one tier of each ladder."""
    found: list[StackResource] = []
    for each in stack:
        if is_fallback_policy(each.type):
            spec = obj(each.props["spec"])
            tiers = [dict(obj(given)) for given in objects(spec["tiers"])]
            tiers[tier]["maxPrice"] = max_price
            each = replace(each, props={**each.props, "spec": {**spec, "tiers": tiers}})
        found.append(each)
    return found
