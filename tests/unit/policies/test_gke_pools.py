"""GKE's node pools are pools to end a ladder on, like Karpenter's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.policies.gke_pools import NODE_POOL, gke_pools
from holdfast.policies.known_values import UNKNOWN
from holdfast.policies.ladder_end import ladder_end_findings
from holdfast.scheduling.labels import POOL
from tests.support.gke_stack_resources import gke_pool, gke_stack
from tests.support.gke_stack_resources import gke_pools as valid_pools
from tests.support.stack_resources import capacity_requirement, node_pool, resource

if TYPE_CHECKING:
    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

SPOT = gke_pool("a100-spot", spot=True)


@pytest.mark.parametrize(
    ("what", "pools"),
    [
        ("a pool that says it is no spot", valid_pools()),
        ("a pool that says nothing of it", [SPOT, gke_pool("a100")]),
        (
            "a pool of Karpenter beside one of GKE",
            [SPOT, node_pool("a100", capacity_requirement("on-demand"))],
        ),
        ("nodes of which something else is not known", [SPOT, gke_pool("a100", serviceAccount=UNKNOWN)]),
        ("a system pool without a label", [*valid_pools(), gke_pool("system", labels={})]),
    ],
)
def test_a_ladder_that_ends_on_an_on_demand_pool_of_gke_passes(what: str, pools: list[StackResource]) -> None:
    assert ladder_end_findings(gke_stack(*pools)) == (), f"{what}: there is somewhere to fall back to"


@pytest.mark.parametrize(
    ("what", "pool", "parts"),
    [
        ("spot", gke_pool("a100", spot=True), ["NodePool 'a100' makes spot nodes"]),
        ("preemptible", gke_pool("a100", preemptible=True), ["NodePool 'a100' makes spot nodes"]),
        ("for a week", gke_pool("a100", flexStart=True), ["NodePool 'a100' makes flex-start nodes"]),
        ("unlabelled", gke_pool("a100", labels={}), [f"lack the label {POOL}: a100", "`nodeConfig.labels`"]),
        (
            "of another name",
            gke_pool("other"),
            ["pool 'a100', which no NodePool of this program makes", "'other'"],
        ),
    ],
)
def test_a_ladder_that_ends_on_no_on_demand_pool_is_stopped(
    what: str, pool: StackResource, parts: list[str]
) -> None:
    (finding,) = ladder_end_findings(gke_stack(SPOT, pool))
    assert finding.proven, f"{what}: nothing about it is unknown"
    for part in parts:
        assert part in finding.message, f"{what}: the message must say {part}: {finding.message}"


@pytest.mark.parametrize(
    ("what", "pool"),
    [
        ("whether it is spot", gke_pool("a100", spot=UNKNOWN)),
        ("all of its nodes", resource(NODE_POOL, "a100", {"name": "a100", "nodeConfig": UNKNOWN})),
        ("its labels", gke_pool("a100", labels=UNKNOWN)),
    ],
)
def test_what_only_the_update_will_know_stops_nothing(what: str, pool: StackResource) -> None:
    (finding,) = ladder_end_findings(gke_stack(SPOT, pool))
    assert not finding.proven, f"{what} is known only then: {finding.message}"


def test_a_pool_is_known_by_the_name_that_gke_has_for_it() -> None:
    (named,) = gke_pools([gke_pool("a100")])
    assert (named.name, named.node_pool) == ("a100", "a100"), "messages say what the console shows"
    unnamed: Value = {"nodeConfig": {"labels": {POOL: "a100"}}}
    (found,) = gke_pools([resource(NODE_POOL, "pool-a100", unnamed)])
    assert found.node_pool == "pool-a100", "or what the program calls it"
