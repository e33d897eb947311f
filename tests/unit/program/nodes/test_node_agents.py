"""Agents without which pods do not run on a node: named where the program keeps them from nodes of a pool."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from pulumi_holdfast.ladder.labels import INSTANCE_TYPE, POOL
from pulumi_holdfast.program.nodes.node_agents import DAEMON_SET
from pulumi_holdfast.program.pools.declared import declared_pools
from pulumi_holdfast.program.pools.eks import NODE_GROUP
from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.policy_programs import put
from tests.support.builders.program_jobs import cpu_pool
from tests.support.builders.stack_resources import resource

TAINT: Value = {"key": "team", "value": "vision", "effect": "NoSchedule"}
ANY: Value = [{"operator": "Exists"}]
SPOT: Value = [{"key": "spot", "operator": "Exists"}]


def daemons(name: str, pod: Mapping[str, Value], kind: str = DAEMON_SET) -> StackResource:
    """A DaemonSet, or a patch of one."""
    spec: Value = {"containers": [{"name": name}], **pod}
    props: dict[str, Value] = {"metadata": {"name": name}, "spec": {"template": {"spec": spec}}}
    return resource(kind, name, props)


def patch(name: str, **pod: Value) -> StackResource:
    return daemons(name, pod, f"{DAEMON_SET}Patch")


def release(chart: str, **values: Value) -> StackResource:
    return resource("kubernetes:helm.sh/v3:Release", chart, {"chart": chart, "values": values})


def add_on(name: str, **values: Value) -> StackResource:
    props: dict[str, Value] = {"addonName": name, "configurationValues": json.dumps(values)}
    return resource("aws:eks/addon:Addon", name, props)


ON_OTHERS: Value = {"cni": "aws"}
ON_THESE: Value = {POOL: "cpu"}


@pytest.mark.parametrize(
    ("agents", "named"),
    [
        ([patch("aws-node", nodeSelector=ON_OTHERS)], True),
        ([patch("aws-node", nodeSelector=ON_THESE)], False),
        ([patch("aws-node", nodeSelector=ON_OTHERS), release("cilium/cilium", nodeSelector=ON_THESE)], False),
        ([patch("aws-node", nodeSelector=ON_OTHERS), release("cilium/cilium", nodeSelector=ON_OTHERS)], True),
        ([release("cilium/cilium", operator={"nodeSelector": ON_OTHERS})], False),
        ([add_on("aws-mountpoint-s3-csi-driver", node={"tolerations": SPOT})], True),
        ([add_on("aws-mountpoint-s3-csi-driver", node={"tolerations": ANY})], False),
        ([add_on("aws-ebs-csi-driver", controller={"tolerations": SPOT})], False),
        ([add_on("kube-proxy")], False),
        ([daemons("efs-csi-node", {"tolerations": SPOT})], True),
        ([daemons("fluent-bit", {"tolerations": SPOT})], False),
    ],
)
def test_pool_is_not_judged_where_the_program_keeps_an_agent_from_its_nodes(
    agents: Sequence[StackResource], named: bool
) -> None:
    (read,) = declared_pools([cpu_pool("cpu", "on-demand", taints=[TAINT]), *agents])
    told = [each for each in read.facts.unmodeled if "does not run on its nodes" in each]
    assert bool(told) is named, str(read.facts.unmodeled)


GPUS = resource(
    NODE_GROUP, "p", {"labels": {POOL: "p"}, "instanceTypes": ["p4d.24xlarge"], "clusterName": "east"}
)


def gpu_pool(labels: Mapping[str, Value]) -> StackResource:
    """A NodePool of GPU machines."""
    types: Value = [{"key": INSTANCE_TYPE, "operator": "In", "values": ["p4d.24xlarge"]}]
    pool = cpu_pool("p", "on-demand", requirements=types, nodeClassRef={"group": "karpenter.k8s.aws"})
    put(pool, {POOL: "p", **labels}, "spec", "template", "metadata", "labels")
    return pool


@pytest.mark.parametrize(
    ("labels", "values", "named"),
    [
        ({}, {}, True),
        ({"nvidia.com/gpu.present": "true"}, {}, False),
        ({}, {"affinity": {}}, False),
        ({}, {"nfd": {"enabled": True}}, False),
    ],
    ids=["no label", "the label", "no affinity", "discovers"],
)
def test_chart_of_the_device_plugin_runs_where_a_label_says_that_there_are_gpus(
    labels: dict[str, Value], values: dict[str, Value], named: bool
) -> None:
    (read,) = declared_pools([gpu_pool(labels), release("nvidia-device-plugin", **values)])
    assert bool(read.facts.unmodeled_gpus) is named, str(read.facts.unmodeled_gpus)


def test_device_plugin_of_another_cluster_serves_no_pool() -> None:
    east, west = (resource("aws:eks/cluster:Cluster", name, {"name": name}) for name in ("east", "west"))
    to = replace(resource("pulumi:providers:kubernetes", "to", {}), refers_to={"kubeconfig": (west.urn,)})
    plugin = replace(daemons("nvidia-device-plugin", {}), provider=to.urn)
    (read,) = declared_pools([east, west, to, GPUS, plugin])
    assert any("in another cluster" in each for each in read.facts.unmodeled_gpus), str(read.facts)


@pytest.mark.parametrize(
    ("pod", "named"),
    [
        ({"tolerations": ANY}, False),
        ({}, True),
        ({"tolerations": ANY, "nodeSelector": {POOL: "cpu-spot"}}, True),
    ],
    ids=["runs", "does not tolerate", "runs on spot"],
)
def test_startup_taint_is_not_judged_where_the_daemons_that_name_it_do_not_run(
    pod: dict[str, Value], named: bool
) -> None:
    remover = daemons("agent", {"containers": [{"args": ["--remove=team.io/tuned"]}], **pod})
    startup: Value = [{"key": "team.io/tuned", "effect": "NoSchedule"}]
    (read,) = declared_pools([cpu_pool("cpu", "on-demand", taints=[TAINT], startupTaints=startup), remover])
    assert any("startup taint team.io/tuned" in each for each in read.facts.unmodeled) is named, (
        "nothing removes it where the agent does not run"
    )


@pytest.mark.parametrize(
    ("group", "pod", "named"),
    [
        ({}, {"tolerations": ANY}, False),
        ({}, {"tolerations": ANY, "nodeSelector": {"accelerator": "a100"}}, True),
        ({}, {}, True),
        ({"instanceTypes": ["m7i.xlarge"]}, {}, False),
    ],
    ids=["runs", "selects another label", "does not tolerate the nodes", "no GPUs"],
)
def test_pool_whose_gpus_no_device_plugin_of_the_program_offers_is_not_judged(
    group: dict[str, Value], pod: dict[str, Value], named: bool
) -> None:
    plugin = daemons("agent", {"containers": [{"image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.1"}], **pod})
    chart = release("nvdp/nvidia-device-plugin", gfd={"enabled": True}, **pod)
    taint: Value = {"key": "gpu", "value": "only", "effect": "NO_SCHEDULE"}
    props: dict[str, Value] = {"labels": {POOL: "p"}, "instanceTypes": ["p4d.24xlarge"], "taints": [taint]}
    for made in (plugin, chart):
        (read,) = declared_pools([resource(NODE_GROUP, "p", {**props, **group}), made])
        assert any("does not run on its nodes" in each for each in read.facts.unmodeled_gpus) is named, (
            "by its selectors and tolerations"
        )
