"""Values that only the update will know: they turn a statement about them into advice, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.policies.known_values import UNKNOWN, Unknown
from holdfast.policies.ladder_end import ladder_end_findings
from holdfast.scheduling.labels import CAPACITY_TYPE, POOL, TRAINING
from tests.support.stack_resources import (
    A100,
    A100_SPOT,
    FALLBACK_POLICY_TYPE,
    NAMESPACE_TYPE,
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
    from holdfast.policies.known_values import Value

ON_DEMAND = capacity_requirement("on-demand")


@pytest.mark.parametrize(
    ("unknown", "resources"),
    [
        ("a tier that is not the last", with_ladder(UNKNOWN, A100)),
        ("the patience of a tier", with_ladder({**A100_SPOT, "procurementTimeout": UNKNOWN}, A100)),
        ("the failures of an on-demand tier", with_ladder({**A100, "maxFailures": UNKNOWN})),
        ("a requirement on something else", with_pools(node_pool("a100", ON_DEMAND, {"key": "kubernetes.io/arch", "operator": "In", "values": UNKNOWN}))),
        ("another pool", [*compliant(), resource(NODE_POOL_TYPE, "late", {"metadata": UNKNOWN, "spec": UNKNOWN})]),
        ("the labels of a namespace whose ladder is sound", [namespace(labels=UNKNOWN), ladder(), *pools()]),
        ("a label of the namespace that is not ours", [namespace(labels={TRAINING: "true", "team": UNKNOWN}), ladder(), *pools()]),
    ],
)  # fmt: skip
def test_what_the_rule_does_not_need_may_be_unknown(unknown: str, resources: Sequence[StackResource]) -> None:
    assert ladder_end_findings(resources) == (), f"{unknown}: the ladder's end is known all the same"


@pytest.mark.parametrize(
    ("unknown", "resources"),
    [
        ("the ladder", [namespace(), resource(FALLBACK_POLICY_TYPE, "vision-ladder", {"metadata": {"name": "ladder", "namespace": "vision"}, "spec": UNKNOWN}), *pools()]),
        ("its tiers", [namespace(), ladder(UNKNOWN), *pools()]),
        ("its last tier", with_ladder(A100_SPOT, UNKNOWN)),
        ("the last tier's pool", with_ladder(A100_SPOT, {"pool": UNKNOWN})),
        ("whether a spot tier is for ever", with_ladder({"pool": "a100-spot", "maxFailures": UNKNOWN})),
        ("the pool's capacity type", with_pools(node_pool("a100", capacity_requirement(UNKNOWN)))),
        ("the pool's operator", with_pools(node_pool("a100", capacity_requirement("on-demand", operator=UNKNOWN)))),
        ("the pool's requirements", with_pools(node_pool("a100", UNKNOWN))),
        ("the pool's capacity label", with_pools(node_pool("a100", labels={POOL: "a100", CAPACITY_TYPE: UNKNOWN}))),
        ("the pool's labels", with_pools(node_pool("a100", ON_DEMAND, labels=UNKNOWN))),
        ("a pool label", with_pools(node_pool("a100", ON_DEMAND, labels={POOL: UNKNOWN}))),
        ("the whole NodePool", with_pools(resource(NODE_POOL_TYPE, "a100", {"metadata": UNKNOWN, "spec": UNKNOWN}))),
        ("where the ladder lies", [namespace(), ladder(namespace=UNKNOWN), *pools()]),
        ("the ladder's name", [namespace(), ladder(name=UNKNOWN), *pools()]),
        ("the namespace's name", [namespace(UNKNOWN), ladder(), *pools()]),
        ("whether a namespace without a ladder is for training", [namespace(labels=UNKNOWN), *pools()]),
        ("whether a namespace with a bad ladder is for training", [namespace(labels={TRAINING: UNKNOWN}), ladder([A100_SPOT]), *pools()]),
        ("all of a namespace", [resource(NAMESPACE_TYPE, "vision", {"metadata": UNKNOWN}), *pools()]),
    ],
)  # fmt: skip
def test_what_hangs_on_the_unknown_is_advice(unknown: str, resources: Sequence[StackResource]) -> None:
    findings = ladder_end_findings(resources)
    assert len(findings) == 1, f"{unknown}: it must be said once, not {findings}"
    assert not findings[0].proven, f"{unknown}: {findings[0].message} cannot be known yet"
    assert "known only after the update" in findings[0].message, f"{unknown}: {findings[0].message}"


def test_an_unknown_in_one_namespace_hides_no_violation_in_another() -> None:
    tabular = [namespace("tabular"), ladder([A100_SPOT], namespace="tabular")]
    findings = ladder_end_findings([namespace(), ladder(UNKNOWN), *tabular, *pools()])
    assert [finding.proven for finding in findings] == [False, True], "vision is advice, tabular is not"
    assert findings[1].message.startswith("namespace 'tabular'"), "the violation names its own namespace"


@pytest.mark.parametrize("where", [{"namespace": UNKNOWN}, {"name": UNKNOWN}])
def test_a_bad_ladder_is_a_violation_wherever_it_turns_out_to_lie(where: dict[str, Unknown]) -> None:
    lost = ladder([A100_SPOT], **where)
    (finding,) = ladder_end_findings([namespace(), lost, *pools()])
    assert finding.proven, "with it the namespace ends badly, and without it the namespace has no ladder"


@pytest.mark.parametrize("tiers", [[A100_SPOT, A100], [A100_SPOT, UNKNOWN]], ids=["sound", "perhaps sound"])
def test_a_bad_ladder_condemns_no_namespace_that_may_have_a_better_one(tiers: list[Value]) -> None:
    resources = [
        namespace(),
        ladder([A100_SPOT], namespace=UNKNOWN),
        ladder(tiers, namespace=UNKNOWN),
        *pools(),
    ]
    (finding,) = ladder_end_findings(resources)
    assert not finding.proven, "the other of the two may be the namespace's, and end well"


def test_a_spot_pool_stays_one_whatever_else_is_unknown_of_it() -> None:
    spot = node_pool("a100", capacity_requirement("spot"), UNKNOWN)
    (finding,) = ladder_end_findings(with_pools(spot))
    assert finding.proven, "requirements only take away, and on-demand is gone already"


def test_a_namespace_whose_name_is_unknown_is_named_by_its_resource() -> None:
    (finding,) = ladder_end_findings([namespace(UNKNOWN), *pools()])
    assert finding.proven, "a program without any FallbackPolicy has none for this namespace either"
    assert "'vision-namespace' (its resource's name)" in finding.message, "so that its author finds it"
