"""A rolling update of every operator fits on the system nodes of every stack, beside what the cloud runs there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pytest

from pulumi_holdfast.ladder.quantities import parse_cpu, parse_memory
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner, machine_capacity
from pulumi_holdfast.ladder.reachability.shape import Resources
from pulumi_holdfast.stack_program import load_platform
from tests.support.builders.configurations import new_cluster
from tests.support.builders.policy_programs import STACKS, program
from tests.support.doc_pages import ROOT
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulumi_holdfast.clouds import Platform
    from pulumi_holdfast.ladder.json import Json


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A Deployment on the system nodes; `surges`: its rolling update starts a pod before it ends one."""

    name: str
    replicas: int
    requests: Resources
    surges: bool


def resources(cpu: str, memory: str) -> Resources:
    return Resources(cpu_millis=parse_cpu(cpu), memory_mib=parse_memory(memory))


#: The pods that a cloud runs once in a cluster, on its system nodes; those on each node are left out of what is allocatable.
#: AWS: two of CoreDNS and of the EBS controller and one of metrics-server, each as the largest of them. Others: more than their clusters run.
ONCE: Final = {
    "aws": [resources("100m", "200Mi")] * 5,
    "azure": [resources("100m", "200Mi")] * 6,
    "gcp": [resources("150m", "200Mi")] * 8,
}
#: KubeRay's chart recreates its pods; Karpenter's ends one before it starts another.
WITHOUT_SURGE: Final = {"kuberay-operator", "karpenter"}
CLOUD_STACKS = [stack for stack in STACKS if stack != "local"]


def requests_of(declared: Json) -> Resources:
    asked = obj(declared["requests"])
    return resources(str(asked["cpu"]), str(asked["memory"]))


def operators_of(stack: str) -> Iterator[Operator]:
    """The operators of a stack, as its program registers them."""
    for resource in program(stack):
        if resource.type.endswith(":Deployment"):
            spec = obj(resource.props["spec"])
            (container,) = objects(obj(obj(spec["template"])["spec"])["containers"])
            yield Operator(
                name=resource.logical_name,
                replicas=int(float(str(spec["replicas"]))),
                requests=requests_of(obj(container["resources"])),
                surges=True,
            )
        elif resource.type.endswith(":Release"):
            values = obj(resource.props.get("values"))
            settings = obj(values.get("controller")) if "controller" in values else values
            if "resources" in settings:
                name = str(resource.props["name"])
                yield Operator(
                    name=name,
                    replicas=int(float(str(settings.get("replicas", values.get("replicas"))))),
                    requests=requests_of(obj(settings["resources"])),
                    surges=name not in WITHOUT_SURGE,
                )


def free_nodes(stack: str) -> list[Resources]:
    """What is free on each system node of a stack before the operators run; of several machine types the smallest."""
    platform = load_platform(ROOT / "stacks" / f"Pulumi.{stack}.yaml")
    return placed(_nodes(platform), ONCE[platform.cloud])


def _nodes(platform: Platform) -> list[Resources]:
    match platform.cloud:
        case "aws":
            sizes = [
                machine_capacity(each, Provisioner.EKS).allocatable for each in platform.system_machines()
            ]
            smallest = min(sizes, key=lambda size: (size.cpu_millis, size.memory_mib))
            return [smallest] * new_cluster(platform.cluster).system_nodes.count
        case "azure":
            size = machine_capacity(platform.system_machines()[0], Provisioner.AKS).allocatable
            return [size] * new_cluster(platform.cluster).system_nodes.count
        case "gcp":
            size = machine_capacity(platform.system_machines()[0], Provisioner.GKE).allocatable
            # Two zones at least: a regional cluster has three, a zonal one gets a second node.
            return [size] * 2 * new_cluster(platform.cluster).system_nodes.per_zone
        case _:
            raise ValueError(platform.cloud)


def less(size: Resources, used: Resources) -> Resources:
    return Resources(
        cpu_millis=size.cpu_millis - used.cpu_millis, memory_mib=size.memory_mib - used.memory_mib
    )


def placed(nodes: Sequence[Resources], pods: Sequence[Resources]) -> list[Resources]:
    """What is free once each pod is on the node with the most free CPU, as the scheduler's default scoring spreads them."""
    free = list(nodes)
    for pod in pods:
        index = max(range(len(free)), key=lambda number: free[number].cpu_millis)
        assert pod.fits_in(free[index]), f"a pod of {pod} fits on no system node: {free}"
        free[index] = less(free[index], pod)
    return free


def stuck(stack: str, operators: Sequence[Operator]) -> list[str]:
    """The operators whose rolling update could not start its first pod on any system node."""
    running = [each.requests for each in operators for _ in range(each.replicas)]
    running.sort(key=lambda requests: -requests.cpu_millis)
    free = placed(free_nodes(stack), running)
    return [
        each.name
        for each in operators
        if each.surges and not any(each.requests.fits_in(node) for node in free)
    ]


@pytest.mark.parametrize("stack", CLOUD_STACKS)
def test_a_rolling_update_of_every_operator_fits(stack: str) -> None:
    operators = list(operators_of(stack))
    assert {"jobset", "kuberay-operator", "main-fallback-controller-deployment"} <= {
        each.name for each in operators
    }
    assert stuck(stack, operators) == [], "an update would wait for a node until its timeout"


def test_the_requests_of_jobsets_chart_do_not_fit() -> None:
    upstream = [
        replace(each, requests=resources("500m", "128Mi")) if each.name == "jobset" else each
        for each in operators_of("aws-dev")
    ]
    assert stuck("aws-dev", upstream) == ["jobset"]
