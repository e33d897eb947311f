"""What a stack exports becomes the facts of another stack's tier, and warnings about it; whatever the other stack is."""

from typing import Final

import pytest

from pulumi_holdfast.clouds import pool_summaries
from pulumi_holdfast.config.namespace import NamespaceSection, TierSection
from pulumi_holdfast.kubernetes.fallback_policy import facts_object
from pulumi_holdfast.kubernetes.other_clusters import exported_fields, tier_warnings
from pulumi_holdfast.ladder.json import Json, mapping
from tests.support.builders.configurations import aws_platform

URI: Final = "s3://checkpoints-0a1b2c3/vision"
PLATFORM: Final = aws_platform()
POOLS: Final = pool_summaries(PLATFORM)
#: The outputs of a stack like this one in another region.
THERE: Final[Json] = {
    "stack": "acme/holdfast/aws-us-east-2",
    "pools": {name: {"facts": facts_object(each)} for name, each in POOLS.items()},
    "ladders": {"vision": ["a100-spot", "a100"]},
    "checkpointUris": {"vision": URI},
    "network": {"region": "us-east-2", "isolated": False},
}


def vision(pool: str = "a100-spot") -> tuple[NamespaceSection, TierSection]:
    """The namespace, whose second tier is a pool of that name in another cluster; and the tier."""
    (found,) = (each for each in PLATFORM.namespaces if each.name == "vision")
    first, *others = found.ladder
    there = first.model_copy(update={"cluster": "us-east-2", "pool": pool})
    return found.model_copy(update={"ladder": (first, there, *others)}), there


def warnings(outputs: Json, *, pool: str = "a100-spot", region: str = "us-east-1", uri: str = URI) -> str:
    """What is said of the tier, with the outputs of its stack."""
    namespace, tier = vision(pool)
    fields = exported_fields(outputs, namespace="vision", pool=pool, region=region)
    return "\n".join(tier_warnings(namespace, 2, tier, fields, checkpoint_uri=uri, pools=POOLS))


def test_tier_has_the_facts_that_its_own_stack_judges_by() -> None:
    fields = exported_fields(THERE, namespace="vision", pool="a100", region="us-east-1")
    assert fields["facts"] == facts_object(POOLS["a100"])
    exported = {"ladder": ["a100-spot", "a100"], "checkpoints": URI, "reachesCheckpoints": True}
    assert fields["exported"] == {"stack": THERE["stack"], **exported}
    assert not warnings(THERE)


@pytest.mark.parametrize(
    "uri", ["gs://checkpoints-0a1b2c3/vision", "abfss://vision@checkpoints0a1b2c3d.blob.core.windows.net"]
)
def test_checkpoints_are_judged_alike_on_every_cloud(uri: str) -> None:
    there: Json = {**THERE, "checkpointUris": {"vision": uri}}
    assert not warnings(there, uri=uri)
    assert "starts without its own" in warnings(there)


@pytest.mark.parametrize(
    ("outputs", "pool", "words"),
    [
        ({"stack": "s", "pools": None}, "a100-spot", "its stack was not updated yet"),
        ({**THERE, "pools": {"a100-spot": {"capacity": "spot"}}}, "a100-spot", "Update it with this release"),
        (THERE, "h100", "pool h100 is not on the ladder of this namespace in stack acme/holdfast/aws-us-east-2"),
        ({**THERE, "ladders": {}}, "a100-spot", "has no training namespace of this name"),
        ({**THERE, "checkpointUris": {"vision": "s3://b/vision"}}, "a100-spot", "starts without its own"),
        ({**THERE, "network": {"region": "us-east-2", "isolated": True}}, "a100-spot", "leads to no store"),
        ({**THERE, "checkpointUris": None}, "a100-spot", "whether jobs find their checkpoints there is not known"),
    ],
)  # fmt: skip
def test_what_is_wrong_or_not_known_of_a_tier_elsewhere_is_said(outputs: Json, pool: str, words: str) -> None:
    found = warnings(outputs, pool=pool)
    assert words in found
    assert f"tier 2 → pool us-east-2/{pool}" in found


@pytest.mark.parametrize(
    ("region", "registry"),
    [
        ("us-east-1", ".dkr.ecr.us-east-1.amazonaws.com"),
        ("cn-north-1", ".dkr.ecr.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_isolated_network_leads_to_buckets_and_registries_of_its_own_region(
    region: str, registry: str
) -> None:
    isolated: Json = {**THERE, "network": {"region": region, "isolated": True}}
    fields = mapping(exported_fields(isolated, namespace="vision", pool="a100", region=region)["exported"])
    assert fields["reachesCheckpoints"] is True
    assert fields["registry"] == registry


def test_pool_that_is_too_small_there_is_said_with_the_check() -> None:
    facts = mapping(mapping(mapping(THERE["pools"])["a100-spot"])["facts"])
    small: Json = {**facts, "machines": [{"name": "t", "cpu": "1", "memory": "1Gi", "gpus": 0}]}
    assert "none of its machine types fits" in warnings({**THERE, "pools": {"a100-spot": {"facts": small}}})
