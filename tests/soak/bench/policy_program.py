"""A generated program of any size: training namespaces with ladders and pools, and other resources.

It uses no component of this project, and violates no mandatory rule.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import ConfigMap, Namespace, ResourceQuota
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from pulumi_holdfast.ladder.json import Json

#: Resources per namespace with a ladder and two pools: fewer than in real programs, since the rules check these.
_OF_A_TEAM: Final = 50
_SPOT: Final = {"key": "karpenter.sh/capacity-type", "value": "spot", "effect": "NoSchedule"}


@dataclass(frozen=True, kw_only=True)
class Team:
    """A training namespace, its pools, and its total number of resources."""

    name: str
    resources: int


def teams(resources: int) -> Iterator[Team]:
    """Yield teams with `resources` resources in total."""
    for number in range(0, resources, _OF_A_TEAM):
        yield Team(name=f"team-{number // _OF_A_TEAM}", resources=min(_OF_A_TEAM, resources - number))


def program(resources: int) -> None:
    """Register `resources` resources."""
    for team in teams(resources):
        register(team)


def register(team: Team) -> None:
    """Register a team's resources, including their component."""
    around = ComponentResource("bench:index:Team", team.name)
    opts = ResourceOptions(parent=around)
    made = [around, *_training(team.name, opts)]
    for number in range(len(made), team.resources):
        _service(f"{team.name}-{number}", team.name, number, opts)


def _training(team: str, opts: ResourceOptions) -> Iterator[object]:
    yield Namespace(team, metadata={"name": team, "labels": {"holdfast.dev/training": "true"}}, opts=opts)
    yield ResourceQuota(
        f"{team}-quota",
        metadata={"name": "quota", "namespace": team},
        spec={"hard": {"pods": "500"}},
        opts=opts,
    )
    yield CustomResource(
        f"{team}-ladder",
        api_version="holdfast.dev/v1alpha1",
        kind="FallbackPolicy",
        metadata={"name": "ladder", "namespace": team},
        spec={
            "tiers": [
                {"pool": f"{team}-spot", "maxFailures": 5, "procurementTimeout": "15m"},
                {"pool": team},
            ],
            "shapes": [{"name": "gang", "pods": 4, "cpu": "4", "memory": "8Gi"}],
        },
        opts=opts,
    )
    tolerates = {"taint": _SPOT, "selections": [{"key": "holdfast.dev/pool", "values": [f"{team}-spot"]}]}
    yield CustomResource(
        f"{team}-admission",
        api_version="admissionregistration.k8s.io/v1",
        kind="MutatingAdmissionPolicy",
        metadata={"name": team, "annotations": {"holdfast.dev/tolerates": json.dumps(tolerates)}},
        opts=opts,
    )
    yield _node_pool(f"{team}-spot", "spot", [_SPOT], opts)
    yield _node_pool(team, "on-demand", [], opts)


def _node_pool(name: str, capacity: str, taints: list[Json], opts: ResourceOptions) -> CustomResource:
    requirements = [
        _one_of("karpenter.sh/capacity-type", capacity),
        _one_of("node.kubernetes.io/instance-type", "c7i.4xlarge", "c7a.4xlarge", "c6i.4xlarge"),
    ]
    template = {
        "metadata": {"labels": {"holdfast.dev/pool": name}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": requirements,
            "taints": taints,
            "expireAfter": "Never",
        },
    }
    disruption = {"consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}
    return CustomResource(
        f"{name}-pool",
        api_version="karpenter.sh/v1",
        kind="NodePool",
        metadata={"name": name},
        spec={"template": template, "disruption": disruption, "limits": {"nodes": "20"}},
        opts=opts,
    )


def _one_of(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def _service(name: str, namespace: str, number: int, opts: ResourceOptions) -> None:
    if number % 4:
        placed = ObjectMetaArgs(name=name, namespace=namespace)
        ConfigMap(name, metadata=placed, data={"settings": f"replicas: {number}\n" * 8}, opts=opts)
        return
    labels = {"app": name}
    container = {
        "name": "main",
        "image": "registry.example.com/app:1.4.2",
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}},
        "env": [{"name": "MODE", "value": "serve"}],
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    CustomResource(
        name,
        api_version="apps/v1",
        kind="Deployment",
        metadata={"name": name, "namespace": namespace},
        spec={"selector": {"matchLabels": labels}, "template": template},
        opts=opts,
    )
