"""The report says of each namespace, ladder, tier and shape whether it is proved, broken, assumed or not judged."""

from collections.abc import Sequence

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.resources import Stack, StackResource, Value
from rule import MADE_ELSEWHERE, ON_DEMAND_POOLS, PACK_DEFAULTS
from rules.verdicts import RULE, Word, verdicts
from tests.support.builders.policy_programs import program
from tests.support.builders.stack_resources import (
    A100,
    A100_SPOT,
    capacity_requirement,
    compliant,
    gke_pools,
    ladder,
    namespace,
    node_pool,
    pools,
    resource,
    with_ladder,
)

TYPES: Value = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p4d.24xlarge"]}
SPOT = node_pool("a100-spot", capacity_requirement("spot"), TYPES)
ON_DEMAND = node_pool("a100", capacity_requirement("on-demand"), TYPES)
NARROW: Value = {"metadata": {"name": "q", "namespace": "vision"}, "spec": {"hard": {"pods": "0"}}}
assert isinstance(NARROW, dict)


def shaped(*shapes: Value, tiers: Value = (A100_SPOT, A100)) -> StackResource:
    """The ladder of the namespace with shapes."""
    made = ladder(tiers)
    return resource(
        made.type, "vision-ladder", {**made.props, "spec": {"tiers": tiers, "shapes": list(shapes)}}
    )


def words(stack: Sequence[StackResource], **settings: list[str]) -> dict[str, Word]:
    """The word on each part of the only namespace."""
    (found,) = verdicts(stack, {**PACK_DEFAULTS, **settings})
    return {"namespace": found.word} | {part.about.partition(" (")[0]: part.word for part in found.parts}


BLOCK = node_pool("block", capacity_requirement("reserved"), TYPES)


def reserved_first(begins: str, ends: str) -> list[StackResource]:
    """A ladder that begins on reserved capacity with this window."""
    facts: Value = {"capacity": "reserved", "window": {"begins": begins, "ends": ends}}
    tier: Value = {"pool": "block", "maxFailures": 5, "procurementTimeout": "15m", "facts": facts}
    return [*with_ladder(tier, A100), BLOCK]


CASES: list[tuple[str, Sequence[StackResource], str, Word]] = [
    ("a ladder that ends on on-demand", compliant(), "ladder", Word.PROVED),
    ("a spot tier with a timeout", compliant(), "tier 1 → pool a100-spot", Word.PROVED),
    ("an on-demand tier that is last", compliant(), "tier 2 → pool a100", Word.PROVED),
    ("a ladder that ends on spot", with_ladder(A100_SPOT), "ladder", Word.BROKEN),
    ("a ladder that declares to stay", with_ladder({"pool": "a100-spot", "maxFailures": -1}), "ladder", Word.ASSUMED),
    ("a block that is there", reserved_first("2020-01-01T00:00:00Z", "2126-01-01T00:00:00Z"), "tier 1 → pool block", Word.PROVED),
    ("a block that begins later", reserved_first("2126-01-01T00:00:00Z", "2126-02-01T00:00:00Z"), "tier 1 → pool block", Word.ASSUMED),
    ("a block that is over", reserved_first("2020-01-01T00:00:00Z", "2020-02-01T00:00:00Z"), "tier 1 → pool block", Word.BROKEN),
    ("a ladder that ends on reserved capacity", [*with_ladder(A100, {"pool": "block"}), BLOCK], "ladder", Word.BROKEN),
    ("no ladder", [namespace(), *pools()], "ladder", Word.BROKEN),
    ("a spot tier without a timeout", with_ladder({"pool": "a100-spot", "maxFailures": 5}, A100), "tier 1 → pool a100-spot", Word.BROKEN),
    ("a timeout that is not known", with_ladder({**A100_SPOT, "procurementTimeout": UNKNOWN}, A100), "tier 1 → pool a100-spot", Word.NOT_JUDGED),
    ("a pool that is not known", with_ladder({**A100_SPOT, "pool": UNKNOWN}, A100), "tier 1 → pool not known yet", Word.NOT_JUDGED),
    ("a pool that another program may make", with_ladder({**A100_SPOT, "pool": "gone"}, A100), "tier 1 → pool gone", Word.NOT_JUDGED),
    ("a program without pools", [namespace(), ladder()], "tier 2 → pool a100", Word.NOT_JUDGED),
    ("a label that is not known", [namespace(labels=UNKNOWN), ladder(), *pools()], "label", Word.NOT_JUDGED),
    ("a namespace of another program", [ladder(), *pools()], "ladder", Word.PROVED),
    ("a quota that admits no gang", [namespace(), shaped({"name": "fit"}), *pools(), resource("kubernetes:core/v1:ResourceQuota", "q", NARROW)], "quota", Word.BROKEN),
    ("machines of no known cloud", [namespace(), ladder(), SPOT, ON_DEMAND], "namespace", Word.NOT_JUDGED),
]  # fmt: skip


@pytest.mark.parametrize(("case", "stack", "about", "word"), CASES, ids=[case for case, *_ in CASES])
def test_each_part_has_its_word(case: str, stack: Sequence[StackResource], about: str, word: Word) -> None:
    assert words(stack)[about] is word, f"{case}: {words(stack)}"


def test_namespace_has_the_worst_word_of_its_parts() -> None:
    for case, stack, _, _ in CASES:
        found = words(stack)
        assert found["namespace"] is max(found.values(), key=list(Word).index), case


@pytest.mark.parametrize("settings", [{ON_DEMAND_POOLS: ["a100"]}, {MADE_ELSEWHERE: ["pools"]}])
def test_declared_pool_of_another_program_is_assumed(settings: dict[str, list[str]]) -> None:
    assert words([namespace(), ladder(), SPOT], **settings)["tier 2 → pool a100"] is Word.ASSUMED


def test_missing_pool_of_a_program_that_makes_all_pools_is_broken() -> None:
    stack = with_ladder({**A100_SPOT, "pool": "gone"}, A100)
    assert words(stack, madeHere=["pools"])["tier 1 → pool gone"] is Word.BROKEN


def test_modeled_autoscaler_is_named_among_what_is_taken_for_granted() -> None:
    (found,) = verdicts(Stack(program("aws-dev")), PACK_DEFAULTS)
    assert found.word is Word.PROVED
    (found,) = verdicts(Stack(program("gcp-dev")), PACK_DEFAULTS)
    assert "GKE's cluster autoscaler (modeled from its documentation)" in str(found)


def test_shape_that_fits_nowhere_is_broken_with_the_check_that_fails() -> None:
    stack = program("aws-dev")
    (made,) = (each for each in stack if each.type.endswith(":FallbackPolicy"))
    spec = made.props["spec"]
    assert isinstance(spec, dict)
    spec["shapes"] = [{"name": "huge", "cpu": "9000", "memory": "1Gi"}]
    (found,) = verdicts(stack, PACK_DEFAULTS)
    assert found.word is Word.BROKEN
    assert "none of its machine types fits" in str(found)


def test_program_with_pools_and_no_ladder_is_not_judged() -> None:
    (finding,) = RULE.find(gke_pools(), PACK_DEFAULTS)
    assert finding.message.startswith("nothing is judged")
    assert RULE.find([], PACK_DEFAULTS) == ()
