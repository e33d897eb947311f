"""Valid configurations of every cloud: they parse, survive a round trip, and need no SDK."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, cast

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import ValidationError

from pulumi_holdfast.aws.config.sections import AwsPlatform
from pulumi_holdfast.azure.config.sections import AzurePlatform
from pulumi_holdfast.config.cidrs import fewest_bits
from pulumi_holdfast.config.fields import Section
from pulumi_holdfast.config.sections import ControllerSection
from pulumi_holdfast.gcp.config.sections import GcpPlatform
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.reachability.pool_summary import summarize_pool
from pulumi_holdfast.stack_program import load_platform, provider_packages
from tests.support.builders.configurations import (
    Document,
    aws_document,
    aws_problems,
    azure_problems,
    gcp_document,
    gcp_problems,
    machine,
    nap_document,
    platform_document,
    problems,
    read,
    read_aws,
    read_azure,
    read_gcp,
)
from tests.support.doc_pages import ROOT
from tests.support.strategies import cloud_configs
from tests.support.strategies.any_json import any_json


class Cloud(NamedTuple):
    """What the tests need to know of a cloud; `settings` are the fields that are not in the document."""

    read: Callable[..., Section]
    problems: Callable[..., tuple[Problem, ...]]
    documents: SearchStrategy[tuple[str, Document]] | SearchStrategy[tuple[None, Document]]
    settings: set[str]
    sdk: str
    sections: tuple[type[Section], ...]
    fields: set[str]


CLOUDS: Mapping[str, Cloud] = {
    "aws": Cloud(
        read_aws,
        aws_problems,
        cloud_configs.aws(),
        {"region"},
        "pulumi_aws",
        (AwsPlatform,),
        {"efa", "vpcId", "serviceCidr", "ladder"},
    ),
    "azure": Cloud(
        read_azure,
        azure_problems,
        cloud_configs.azure(),
        {"location", "subscription_id", "tenant_id"},
        "pulumi_azure_native",
        (AzurePlatform,),
        {"scaling", "vmSizes", "publicName", "ladder"},
    ),
    "gcp": Cloud(
        read_gcp,
        gcp_problems,
        cloud_configs.gcp(),
        {"region", "project"},
        "pulumi_gcp",
        (GcpPlatform,),
        {"podsCidr", "podsRange", "allowExternal", "perZone", "ladder"},
    ),
}
every_cloud = pytest.mark.parametrize("cloud", CLOUDS)


def read_local(document: JsonValue, _region: None = None) -> Section:
    """A local stack has no region."""
    return read(document)


def local_problems(document: JsonValue, _region: str | None = None) -> tuple[Problem, ...]:
    return problems(document)


LOCAL = Cloud(read_local, local_problems, cloud_configs.local(), set(), "pulumi_kubernetes", (), set())
#: Cloud → its configuration; the local one has no SDK, and no chapter of the documentation, of its own.
CONFIGURATIONS = {**CLOUDS, "local": LOCAL}
every_configuration = pytest.mark.parametrize("cloud", CONFIGURATIONS)
STACKS = (
    *("aws-data", "aws-dev", "aws-dev-2", "aws-prod"),
    *("azure-data", "azure-dev", "azure-prod"),
    *("gcp-data", "gcp-dev", "gcp-prod"),
    "local",
)


@every_configuration
@given(data=st.data())
@settings(max_examples=25)
def test_a_platform_written_again_parses_to_the_same(cloud: str, data: st.DataObject) -> None:
    region, document = data.draw(CONFIGURATIONS[cloud].documents)
    platform = CONFIGURATIONS[cloud].read(document, region)
    text = platform.model_dump_json(by_alias=True, exclude_none=True, exclude=CONFIGURATIONS[cloud].settings)
    written = cast("Json", json.loads(text))
    assert CONFIGURATIONS[cloud].read({**written}, region) == platform


def mappings(value: JsonValue) -> Iterator[Document]:
    """Every mapping of a document that is a section: all except devices, whose keys are names of resources."""
    if isinstance(value, dict):
        yield value
        value = [inner for key, inner in value.items() if key != "devices"]
    for inner in value if isinstance(value, list) else ():
        yield from mappings(inner)


@every_configuration
@given(data=st.data())
@settings(max_examples=25)
def test_an_unknown_field_anywhere_is_exactly_one_problem(cloud: str, data: st.DataObject) -> None:
    region, document = data.draw(CONFIGURATIONS[cloud].documents)
    document = cast("Document", json.loads(json.dumps(document)))
    data.draw(st.sampled_from(list(mappings(document))))["surprise"] = 1
    (found,) = CONFIGURATIONS[cloud].problems(document, region)
    assert found.field.endswith(".surprise")


@every_configuration
@given(
    document=any_json(
        "cluster",
        "access",
        "scaling",
        "network",
        "cidr",
        "zones",
        "pools",
        "namespaces",
        "name",
        "ladder",
        "pool",
        "version",
        "shapes",
        "cpu",
        "quota",
    )
)
@settings(max_examples=60)
def test_any_document_parses_or_causes_problems_with_a_fix(cloud: str, document: JsonValue) -> None:
    complete: Document = {**document, "cloud": cloud} if isinstance(document, dict) else {"cloud": cloud}
    for region in (None, "mars"):
        found = CONFIGURATIONS[cloud].problems(complete, region)
        assert found
        assert all(problem.fix for problem in found)


@given(cloud_configs.local(), st.data())
def test_a_missing_pool_is_one_problem_for_each_tier_that_names_it(
    drawn: tuple[None, Document], data: st.DataObject
) -> None:
    _, document = drawn
    pools = cast("list[Document]", document["pools"])
    gone = pools.pop(data.draw(st.integers(0, len(pools) - 1)))
    ladders_naming_it = [
        tier
        for namespace in cast("list[Document]", document["namespaces"])
        for tier in cast("list[Document]", namespace["ladder"])
        if tier["pool"] == gone["name"]
    ]
    found = problems(document)
    lost_default = 1 if gone.get("default") else 0
    assert len(found) == len(ladders_naming_it) + lost_default, f"{[str(problem) for problem in found]}"


@pytest.mark.parametrize("stack", STACKS)
def test_every_stack_of_the_repository_is_valid_and_ends_on_demand(stack: str) -> None:
    platform = load_platform(ROOT / f"stacks/Pulumi.{stack}.yaml")
    assert platform.cloud == stack.partition("-")[0]
    own = {"aws": ("aws",), "azure": ("azure-native",), "gcp": ("gcp",)}.get(platform.cloud, ())
    assert provider_packages(platform) == (*own, "kubernetes")
    capacity = {pool.name: pool.capacity for pool in platform.pools}
    for namespace in platform.namespaces:
        assert capacity[namespace.ladder[-1].pool] is CapacityType.ON_DEMAND, f"{namespace.name}: the end"


def test_a_default_quota_counts_only_the_pools_of_its_ladder() -> None:
    pool = Pool(name="a100", capacity=CapacityType.ON_DEMAND, has_gpus=True, max_nodes=8)
    summary = summarize_pool(pool, [machine(gpus=8)], ())
    namespace = read(platform_document()).namespaces[0]
    used = {tier.pool: summary for tier in namespace.ladder}
    quota = namespace.as_quota({**used, "of-other-namespaces": summary})
    assert quota == namespace.as_quota(used), "one namespace could take the GPUs of all others"


@pytest.mark.parametrize("stack", ["aws-dev", "azure-dev", "gcp-dev"])
def test_a_development_stack_needs_no_gpu_quota_and_can_be_destroyed(stack: str) -> None:
    platform = load_platform(ROOT / f"stacks/Pulumi.{stack}.yaml")
    assert platform.cloud != "local"
    assert not any(pool.has_gpus for pool in platform.scheduling_pools())
    assert not platform.protected
    assert any(pool.capacity is CapacityType.SPOT for pool in platform.pools)


def test_parsing_stacks_imports_no_sdk_and_the_local_stack_imports_none_of_a_cloud() -> None:
    stacks = ["local", *(f"{cloud}-{kind}" for cloud in CLOUDS for kind in ("dev", "prod"))]
    sdks = [cloud.sdk for cloud in CLOUDS.values()]
    program = (
        "import sys; from pathlib import Path; from pulumi_holdfast.stack_program import load_platform; "
        f"[load_platform(Path(f'stacks/Pulumi.{{name}}.yaml')) for name in {stacks}]; "
        f"print([name for name in {[*sdks, 'pulumi_kubernetes']} if name in sys.modules]); "
        "import pulumi_holdfast.local.training_cluster; "
        f"print([name for name in {sdks} if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["[]", "[]"]


def documented(cloud: str) -> str:
    """The chapter of a cloud in docs/configuration.md."""
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    return text.partition(f"\n## `{cloud}` only\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    ("cloud", "examples", "keys"),
    [("azure", 2, ("azure-native:location",)), ("gcp", 1, ("gcp:region", "gcp:project"))],
)
def test_the_examples_of_the_documentation_are_valid(
    cloud: str, examples: int, keys: tuple[str, ...]
) -> None:
    found = re.findall(r"```yaml\n(.*?)```", documented(cloud), re.DOTALL)
    assert len(found) == examples
    for example in found:
        config = cast("dict[str, Document]", yaml.safe_load(example)["config"])
        values = [str(config[key]) for key in keys]
        assert not CLOUDS[cloud].problems(config["holdfast:platform"], *values)


@pytest.mark.parametrize(("addresses", "bits"), [(0, 0), (1, 0), (2, 1), (4, 2), (5, 3), (256, 8), (257, 9)])
def test_a_power_of_two_of_addresses_needs_no_extra_bit(addresses: int, bits: int) -> None:
    assert fewest_bits(addresses) == bits, "one bit more would reject a network that is large enough"


@pytest.mark.parametrize(
    ("cloud", "change", "field"),
    [
        ("aws", {"cluster": {"serviceCidr": "10.0.0.0/{}"}}, ".cluster.serviceCidr"),
        ("azure", {"network": {"servicesCidr": "10.0.0.0/{}"}}, ".network.servicesCidr"),
        ("gcp", {"network": {"servicesCidr": "10.0.0.0/{}"}}, ".network.servicesCidr"),
    ],
)
@pytest.mark.parametrize("valid", [True, False])
def test_the_limits_of_service_ranges_are_inclusive(
    cloud: str, change: Document, field: str, *, valid: bool
) -> None:
    limits = {"aws": (12, 24), "azure": (12, 28), "gcp": (16, 27)}[cloud]
    base = {"aws": aws_document, "azure": nap_document, "gcp": gcp_document}[cloud]()
    for prefix in limits if valid else (limits[0] - 1, limits[1] + 1):
        written = cast("dict[str, Document]", json.loads(json.dumps(change).replace("{}", str(prefix))))
        document = base | {
            name: {**cast("Document", base[name]), **fields} for name, fields in written.items()
        }
        found = [problem for problem in CLOUDS[cloud].problems(document) if problem.field.endswith(field)]
        about_size = [problem for problem in found if f"/{limits[0]} to /{limits[1]}" in problem.allowed]
        assert bool(about_size) is not valid, f"/{prefix}: {[str(problem) for problem in found]}"


DIGEST = "sha256:" + 64 * "a"


@pytest.mark.parametrize(
    "image",
    [
        None,
        "ghcr.io/acme/fallback-controller:0.1.0",
        f"ghcr.io/acme/fallback-controller@{DIGEST}",
        f"registry.example.com:5000/a/b_c/controller:v1@{DIGEST}",
        "localhost:5000/controller:dev",
    ],
)
def test_a_complete_image_reference_is_valid(image: str | None) -> None:
    assert ControllerSection(image=image).image == image


@pytest.mark.parametrize(
    "image",
    [
        "",
        "fallback-controller:0.1.0",
        "ghcr.io/acme/fallback-controller",
        "https://ghcr.io/acme/fallback-controller:0.1.0",
        "ghcr.io/Holdfast/fallback-controller:0.1.0",
        "ghcr.io/acme/fallback-controller:0.1.0 ",
        "ghcr.io/acme/fallback-controller@sha256:abc",
    ],
)
def test_an_incomplete_image_reference_is_a_problem(image: str) -> None:
    with pytest.raises(ValidationError, match="path and a tag"):
        ControllerSection(image=image)
