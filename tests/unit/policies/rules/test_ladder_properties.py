"""Properties of the rules on ladders: each agrees with a one-line model on any ladder."""

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.policy_programs import reported
from tests.support.builders.stack_resources import NODE_POOL_TYPE, namespace, resource
from tests.support.builders.stack_resources import ladder as declared

END, UNKNOWN_END = "training-ladder-ends-on-demand", "training-ladder-end-unknown"
REACH, NOTES = "training-reaches-on-demand", "training-reachability-notes"
SAME = "same-accelerator-on-demand"
GPUS = {"p4d.24xlarge": "a100", "g5.12xlarge": "a10g", "g6.12xlarge": "l4"}


def pool(name: str, kind: Value, *, machine: str = "c7i.4xlarge", nodes: int = 8) -> StackResource:
    """A NodePool of one machine type, without taints."""
    required: list[Value] = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [kind]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [machine]},
    ]
    spec: Value = {"requirements": required, "nodeClassRef": {"group": "karpenter.kwok.sh"}}
    template: Value = {"metadata": {"labels": {POOL: name}}, "spec": spec}
    # Karpenter checks the number of nodes only before it plans, and CPUs for each machine.
    limits: Value = {"nodes": str(nodes), "cpu": str(nodes * machine_catalogue("local")[machine].vcpus)}
    return resource(
        NODE_POOL_TYPE, name, {"metadata": {"name": name}, "spec": {"template": template, "limits": limits}}
    )


def ladder(tiers: list[Value], *shapes: Value) -> StackResource:
    """The ladder of the namespace, with shapes."""
    made = declared(tiers)
    spec: Value = {"tiers": tiers, "shapes": list(shapes)}
    return resource(made.type, "vision-ladder", {"metadata": made.props["metadata"], "spec": spec})


def tier(name: str, failures: int | None = 5) -> Value:
    """A tier with a timeout."""
    return {"pool": name, "maxFailures": failures, "procurementTimeout": "15m"}


@given(
    kinds=st.lists(st.sampled_from(("spot", "on-demand")), min_size=1, max_size=4),
    last=st.sampled_from((5, -1)),
)
def test_ladder_ends_on_demand_or_declares_that_jobs_stay(kinds: list[str], last: int) -> None:
    pools = [pool(f"p{index}", kind) for index, kind in enumerate(kinds)]
    tiers = [tier(f"p{index}") for index in range(len(kinds) - 1)] + [tier(f"p{len(kinds) - 1}", last)]
    found = reported([namespace(), ladder(tiers), *pools])
    assert (END in found) is (kinds[-1] == "spot" and last != -1)
    assert UNKNOWN_END not in found


@given(kind=st.sampled_from(("spot", "on-demand")), hide=st.sampled_from(("tiers", "pool", "capacity")))
def test_unknown_end_is_only_advice(kind: str, hide: str) -> None:
    tiers: Value = {"tiers": UNKNOWN, "pool": [{"pool": UNKNOWN}]}.get(hide, [tier("a")])
    last = pool("a", UNKNOWN if hide == "capacity" else kind)
    made = declared(tiers)
    found = reported(
        [namespace(), resource(made.type, "ladder", {**made.props, "spec": {"tiers": tiers}}), last]
    )
    assert (END in found, UNKNOWN_END in found) == (False, True), f"{hide}: the update checks it again"


@given(pods=st.integers(1, 40), nodes=st.integers(0, 12), cpu=st.integers(1, 24))
def test_gang_falls_back_if_the_on_demand_pool_has_room_for_all_pods(pods: int, nodes: int, cpu: int) -> None:
    on_a_node = 15_900 // (cpu * 1000)  # 16 CPUs without the reservation of the simulated provider
    shape: Value = {"name": "gang", "pods": pods, "cpu": str(cpu), "memory": "1Gi"}
    stack = [namespace(), ladder([tier("s"), {"pool": "d"}], shape), pool("s", "spot"), pool("d", "on-demand", nodes=nodes)]  # fmt: skip
    fits = on_a_node > 0 and nodes * on_a_node >= pods
    assert (REACH in reported(stack)) is not fits, f"{pods} pods of {cpu} CPU on {nodes} nodes"


@given(nodes=st.integers(0, 3), pods=st.integers(1, 3))
def test_tier_that_no_job_can_use_is_advice(nodes: int, pods: int) -> None:
    shape: Value = {"name": "gang", "pods": pods, "cpu": "12", "memory": "1Gi"}
    stack = [namespace(), ladder([tier("s"), {"pool": "d"}], shape), pool("s", "spot", nodes=nodes), pool("d", "on-demand")]  # fmt: skip
    found = reported(stack)
    assert (NOTES in found) is (nodes < pods)
    assert REACH not in found


@given(
    spot=st.sampled_from(sorted(GPUS)), below=st.lists(st.sampled_from(sorted(GPUS)), min_size=1, max_size=2)
)
def test_on_demand_pools_have_the_accelerator_of_the_first_tier(spot: str, below: list[str]) -> None:
    pools = [pool(f"d{index}", "on-demand", machine=machine) for index, machine in enumerate(below)]
    tiers = [tier("s"), *(tier(f"d{index}") for index in range(len(below)))]
    found = reported([namespace(), ladder(tiers), pool("s", "spot", machine=spot), *pools])
    assert (SAME in found) is (GPUS[spot] not in {GPUS[machine] for machine in below})
