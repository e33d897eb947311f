"""What DaemonSets of the program take of the nodes that jobs run on."""

from dataclasses import replace
from typing import cast

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN, Json
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.program.nodes.node_agents import DAEMON_SET
from pulumi_holdfast.program.pools.declared import declared_pools
from pulumi_holdfast.program.resources import StackResource, Value
from rule import PACK_DEFAULTS
from rules.verdicts import Word, verdicts
from tests.support.builders.program_jobs import cpu_pool, declared_jobset, job_program, requesting
from tests.support.builders.stack_resources import resource
from tests.support.json_objects import obj, objects

TAINT: Value = {"key": "team", "value": "vision", "effect": "NoSchedule"}
ANY: Value = [{"operator": "Exists"}]


def daemons(**pod: Value) -> StackResource:
    spec: Value = {"containers": [{"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}], **pod}
    props: dict[str, Value] = {
        "metadata": {"name": "agent", "namespace": "logging"},
        "spec": {"template": {"spec": spec}},
    }
    return resource(DAEMON_SET, "agent", props)


def machine(pool: StackResource, *agents: StackResource) -> MachineCapacity:
    (read,) = declared_pools([pool, *agents])
    assert read.facts.machines is not UNKNOWN, "its machine is in the table"
    return read.facts.machines[0]


@pytest.mark.parametrize(
    ("pod", "runs"),
    [
        ({}, False),
        ({"tolerations": ANY}, True),
        ({"tolerations": [{"key": "team", "operator": "Exists"}]}, True),
        ({"tolerations": ANY, "nodeSelector": {POOL: "cpu"}}, True),
        ({"tolerations": ANY, "nodeSelector": {POOL: "cpu-spot"}}, False),
        ({"tolerations": ANY, "nodeSelector": {"kubernetes.io/arch": "arm64"}}, False),
    ],
)
def test_daemons_take_their_requests_of_the_nodes_that_they_run_on(pod: dict[str, Value], runs: bool) -> None:
    pool = cpu_pool("cpu", "on-demand", taints=[TAINT])
    before, after = machine(pool), machine(pool, daemons(**pod))
    taken = before.allocatable.cpu_millis - after.allocatable.cpu_millis
    assert (taken, before.max_pods - after.max_pods) == ((500, 1) if runs else (0, 0)), "CPU, and a pod"


@pytest.mark.parametrize(("selected", "counts"), [("cpu", True), ("cpu-spot", True), ("other", False)])
def test_daemons_of_any_pool_count_on_a_node_pool_for_any_pool(selected: str, counts: bool) -> None:
    label: Value = {"key": POOL, "operator": "NotIn", "values": ["other"]}
    pool = with_requirement(cpu_pool("cpu", "on-demand"), label)
    before, after = machine(pool), machine(pool, daemons(nodeSelector={POOL: selected}))
    taken = before.allocatable.cpu_millis - after.allocatable.cpu_millis
    assert taken == (500 if counts else 0), "Karpenter compares them with the NodePool before it has pods"


def with_requirement(pool: StackResource, requirement: Value) -> StackResource:
    """A NodePool without labels, and with one more requirement."""
    props = cast("Json", pool.props)
    template = obj(obj(props["spec"])["template"])
    inner = obj(template["spec"])
    required = {**inner, "requirements": [*objects(inner["requirements"]), requirement]}
    spec = {**obj(props["spec"]), "template": {"spec": required}}
    return replace(pool, props=cast("dict[str, Value]", {**props, "spec": spec}))


def word(*agents: StackResource) -> Word:
    job = declared_jobset({"containers": [requesting(cpu="3500m", memory="8Gi")]})
    (found,) = verdicts([*job_program(job), *agents], PACK_DEFAULTS)
    return next(part.word for part in found.parts if part.about == "JobSet 'train'")


def test_job_that_fits_only_without_the_daemons_is_broken() -> None:
    assert word() is Word.PROVED, "3.5 of 3.9 CPUs"
    assert word(daemons()) is Word.BROKEN, "the agent takes 0.5 of them"
    unknown = daemons(containers=[{"resources": {"requests": {"cpu": UNKNOWN}}}])
    assert word(unknown) is Word.NOT_JUDGED, "the update knows what it takes"
