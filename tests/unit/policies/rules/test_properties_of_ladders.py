"""What each rule on ladders says of any ladder, beside a model of it in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.labels import POOL
from tests.support.policy_programs import reported
from tests.support.stack_resources import NODE_POOL_TYPE, namespace, resource
from tests.support.stack_resources import ladder as declared

if TYPE_CHECKING:
    from holdfast.policies.resources import StackResource, Value

END, LATER = "training-ladder-ends-on-demand", "training-ladder-end-unknown"
REACH, CONSIDER = "training-reaches-on-demand", "training-reachability-notes"
SAME = "same-accelerator-on-demand"
GPUS = {"p4d.24xlarge": "a100", "g5.12xlarge": "a10g", "g6.12xlarge": "l4"}


def pool(name: str, kind: Value, *, machine: str = "c7i.4xlarge", nodes: int = 8) -> StackResource:
    """A NodePool of one machine type without taints, of so many nodes."""
    required: list[Value] = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [kind]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [machine]},
    ]
    spec: Value = {"requirements": required, "nodeClassRef": {"group": "karpenter.kwok.sh"}}
    template: Value = {"metadata": {"labels": {POOL: name}}, "spec": spec}
    limits: Value = {"nodes": str(nodes)}
    return resource(
        NODE_POOL_TYPE, name, {"metadata": {"name": name}, "spec": {"template": template, "limits": limits}}
    )


def ladder(tiers: list[Value], *shapes: Value) -> StackResource:
    """The ladder of the namespace, with shapes."""
    made = declared(tiers)
    spec: Value = {"tiers": tiers, "shapes": list(shapes)}
    return resource(made.type, "vision-ladder", {"metadata": made.props["metadata"], "spec": spec})


def tier(name: str, failures: int | None = 5) -> Value:
    """A tier that is left when its capacity does not come."""
    return {"pool": name, "maxFailures": failures, "procurementTimeout": "15m"}


@given(
    kinds=st.lists(st.sampled_from(("spot", "on-demand")), min_size=1, max_size=4),
    last=st.sampled_from((5, -1)),
)
def test_a_ladder_ends_on_demand_or_says_that_it_stays(kinds: list[str], last: int) -> None:
    pools = [pool(f"p{index}", kind) for index, kind in enumerate(kinds)]
    tiers = [tier(f"p{index}") for index in range(len(kinds) - 1)] + [tier(f"p{len(kinds) - 1}", last)]
    found = reported([namespace(), ladder(tiers), *pools])
    assert (END in found) is (kinds[-1] == "spot" and last != -1), f"{kinds}, {last}"
    assert LATER not in found, "all of it is known"


@given(kind=st.sampled_from(("spot", "on-demand")), hide=st.sampled_from(("tiers", "pool", "capacity")))
def test_an_end_that_is_not_known_is_advice_alone(kind: str, hide: str) -> None:
    tiers: Value = {"tiers": UNKNOWN, "pool": [{"pool": UNKNOWN}]}.get(hide, [tier("a")])
    last = pool("a", UNKNOWN if hide == "capacity" else kind)
    made = declared(tiers)
    found = reported(
        [namespace(), resource(made.type, "ladder", {**made.props, "spec": {"tiers": tiers}}), last]
    )
    assert (END in found, LATER in found) == (False, True), (
        f"{hide}: the update will know, and checks it again"
    )


@given(pods=st.integers(1, 40), nodes=st.integers(0, 12), cpu=st.integers(1, 24))
def test_a_gang_falls_back_where_the_on_demand_pool_has_room_for_all_of_it(
    pods: int, nodes: int, cpu: int
) -> None:
    on_a_node = 15_900 // (
        cpu * 1000
    )  # of a machine's 16 CPUs, what the simulated provider keeps is taken off
    shape: Value = {"name": "gang", "pods": pods, "cpu": str(cpu), "memory": "1Gi"}
    stack = [namespace(), ladder([tier("s"), {"pool": "d"}], shape), pool("s", "spot"), pool("d", "on-demand", nodes=nodes)]  # fmt: skip
    fits = on_a_node > 0 and nodes * on_a_node >= pods
    assert (REACH in reported(stack)) is not fits, f"{pods} pods of {cpu} CPU on {nodes} nodes"


@given(nodes=st.integers(0, 3), pods=st.integers(1, 3))
def test_a_tier_that_no_job_can_use_is_advice(nodes: int, pods: int) -> None:
    shape: Value = {"name": "gang", "pods": pods, "cpu": "12", "memory": "1Gi"}
    stack = [namespace(), ladder([tier("s"), {"pool": "d"}], shape), pool("s", "spot", nodes=nodes), pool("d", "on-demand")]  # fmt: skip
    found = reported(stack)
    assert (CONSIDER in found) is (nodes < pods), f"{pods} pods on {nodes} spot nodes"
    assert REACH not in found, "it falls back all the same, when the time for its capacity is over"


@given(
    spot=st.sampled_from(sorted(GPUS)), below=st.lists(st.sampled_from(sorted(GPUS)), min_size=1, max_size=2)
)
def test_one_of_the_on_demand_pools_has_the_accelerator_that_the_ladder_starts_on(
    spot: str, below: list[str]
) -> None:
    pools = [pool(f"d{index}", "on-demand", machine=machine) for index, machine in enumerate(below)]
    tiers = [tier("s"), *(tier(f"d{index}") for index in range(len(below)))]
    found = reported([namespace(), ladder(tiers), pool("s", "spot", machine=spot), *pools])
    assert (SAME in found) is (GPUS[spot] not in {GPUS[machine] for machine in below}), f"{spot}, {below}"
