"""A training namespace carries a ladder whose last tier is an on-demand pool that exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.policies.ladder_end import ladder_end_findings
from holdfast.scheduling.labels import CAPACITY_TYPE, POOL
from tests.support.stack_resources import (
    A100,
    A100_SPOT,
    NODE_POOL_TYPE,
    capacity_requirement,
    compliant,
    ladder,
    namespace,
    node_pool,
    pools,
    resource,
    with_ladder,
    with_pools,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.findings import StackResource

SPOT_FOR_EVER = {"pool": "a100-spot", "maxFailures": -1.0}
ON_DEMAND = capacity_requirement("on-demand")
IN_A_REQUIREMENT = [ON_DEMAND, {"key": POOL, "operator": "In", "values": ["a100"]}]
AS_A_LABEL = {POOL: "a100", CAPACITY_TYPE: "on-demand"}


@pytest.mark.parametrize(
    ("stack", "resources"),
    [
        ("a ladder that ends on on-demand", compliant()),
        ("a ladder of one on-demand tier", with_ladder(A100)),
        ("a last tier that says it stays on spot", with_ladder(SPOT_FOR_EVER)),
        (
            "a pool of on-demand or reserved nodes",
            with_pools(node_pool("a100", capacity_requirement("on-demand", "reserved"))),
        ),
        (
            "a pool that excludes spot",
            with_pools(node_pool("a100", capacity_requirement("spot", operator="NotIn"))),
        ),
        ("a pool labelled by a requirement", with_pools(node_pool("a100", *IN_A_REQUIREMENT, labels={}))),
        ("a capacity type given as a label", with_pools(node_pool("a100", labels=AS_A_LABEL))),
        (
            "a pool made by two NodePools",
            with_pools(*(node_pool(name, ON_DEMAND, labels={POOL: "a100"}) for name in ("zone-a", "zone-b"))),
        ),
        ("a namespace that is not for training", [namespace(labels={}), *pools()]),
        (
            "a namespace that says it is not for training",
            [namespace(labels={"holdfast.dev/training": "false"})],
        ),
        (
            "a namespace without labels",
            [resource("kubernetes:core/v1:Namespace", "web", {"metadata": {"name": "web"}})],
        ),
        ("a ladder in a namespace not for training", [ladder([A100_SPOT], namespace="web"), *compliant()]),
        ("nothing at all", []),
    ],
)
def test_a_stack_with_somewhere_to_fall_back_to_passes(
    stack: str, resources: Sequence[StackResource]
) -> None:
    assert ladder_end_findings(resources) == (), f"{stack}: there is nothing to complain of"


VIOLATIONS = [
    ("no ladder", [namespace(), *pools()], ["namespace 'vision'", "without a FallbackPolicy named 'ladder'", "'a100'"]),
    ("a ladder elsewhere", [namespace(), ladder(namespace="tabular"), *pools()], ["namespace 'vision'", "without a FallbackPolicy"]),
    ("a ladder in no namespace", [namespace(), ladder(namespace=None), *pools()], ["without a FallbackPolicy"]),
    ("a ladder of another name", [namespace(), ladder(name="fast"), *pools()], ["named 'ladder' (it has 'fast', but"]),
    ("no tiers", with_ladder(), ["its ladder has no tiers", "`spec.tiers`"]),
    ("no list of tiers", [namespace(), ladder("a100"), *pools()], ["its ladder has no tiers"]),
    ("spot last", with_ladder(A100, A100_SPOT), ["(tier 2 of 2)", "pool 'a100-spot'", "makes spot nodes", "Append a tier", "'a100'", "maxFailures: -1"]),
    ("spot alone", with_ladder({"pool": "a100-spot"}), ["(tier 1 of 1)", "makes spot nodes"]),
    ("a pool of nobody", with_ladder(A100_SPOT, {"pool": "a1000"}), ["pool 'a1000'", "no NodePool of this program makes", "'a100'", "onDemandPools"]),
    ("a pool of nobody for ever", with_ladder({"pool": "a1000", "maxFailures": -1}), ["pool 'a1000'", "no NodePool of this program makes"]),
    ("no pools at all", with_pools(), ["pool 'a100'", "this program has: none"]),
    ("a pool whose nodes lack the label", with_pools(node_pool("a100", ON_DEMAND, labels={})), ["lack the label holdfast.dev/pool: a100", "spec.template.metadata.labels"]),
    ("a pool of both capacity types", with_pools(node_pool("a100", capacity_requirement("spot", "on-demand"))), ["makes on-demand or spot nodes"]),
    ("a pool of any capacity type", with_pools(node_pool("a100")), ["makes on-demand or reserved or spot nodes"]),
    ("a pool of no capacity type", with_pools(node_pool("a100", capacity_requirement("on-demand"), capacity_requirement("spot"))), ["makes no nodes"]),
    ("a pool made by two NodePools, one of them spot", with_pools(*pools(), node_pool("cheap", capacity_requirement("spot"), labels={POOL: "a100"})), ["NodePool 'cheap' makes spot nodes"]),
    ("a tier without a pool", with_ladder(A100_SPOT, {}), ["(tier 2 of 2)", "`pool: None`"]),
    ("a tier with an empty pool", with_ladder({"pool": ""}), ["`pool: ''`"]),
    ("a tier that is no object", with_ladder(A100_SPOT, "a100"), ["is not an object"]),
    ("a patched namespace", [namespace(type_token="kubernetes:core/v1:NamespacePatch"), *pools()], ["without a FallbackPolicy"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "resources", "parts"), VIOLATIONS, ids=[fault for fault, _, _ in VIOLATIONS]
)
def test_a_stack_with_nowhere_to_fall_back_to_is_stopped_with_the_mend(
    fault: str, resources: Sequence[StackResource], parts: Sequence[str]
) -> None:
    findings = ladder_end_findings(resources)
    assert len(findings) == 1, f"{fault}: one fault is one finding, not {findings}"
    assert findings[0].proven, f"{fault}: nothing about it is unknown"
    for part in parts:
        assert part in findings[0].message, f"{fault}: the message must say {part}: {findings[0].message}"


def test_a_finding_points_at_what_has_to_change() -> None:
    (missing,) = ladder_end_findings([namespace(), *pools()])
    assert missing.urn == namespace().urn, "a missing ladder is the namespace's fault"
    (wrong,) = ladder_end_findings(with_ladder(A100_SPOT))
    assert wrong.urn == ladder().urn, "a ladder that ends badly is its own"


def test_every_namespace_is_judged_by_its_own_ladder() -> None:
    tabular = [namespace("tabular"), ladder([A100_SPOT], namespace="tabular")]
    (finding,) = ladder_end_findings([*compliant(), *tabular])
    assert finding.message.startswith("namespace 'tabular'"), (
        "the sound ladder of 'vision' excuses no other namespace"
    )


def test_an_on_demand_pool_of_another_program_can_be_vouched_for() -> None:
    shared = [namespace(), ladder([A100_SPOT, {"pool": "shared"}]), *pools()]
    assert ladder_end_findings(shared, frozenset({"shared"})) == (), (
        "the stack's owner says where the pool is"
    )
    (finding,) = ladder_end_findings(with_ladder({"pool": "a1000"}), frozenset({"shared"}))
    assert "'a100', 'shared'" in finding.message, "and it is then among the pools to choose from"


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1"])
def test_no_api_version_escapes(version: str) -> None:
    spot_last = ladder([A100_SPOT])
    other = resource(f"kubernetes:holdfast.dev/{version}:FallbackPolicy", "vision-ladder", spot_last.props)
    assert ladder_end_findings([namespace(), other, *pools()]), "a later version of the kind is the same kind"


def test_a_node_pool_that_is_malformed_makes_no_pool() -> None:
    broken = resource(NODE_POOL_TYPE, "a100", {"spec": "on-demand", "metadata": ["a100"]})
    (finding,) = ladder_end_findings(with_pools(broken))
    assert "lack the label holdfast.dev/pool: a100" in finding.message, "and the message says what it lacks"
