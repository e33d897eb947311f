"""A program that breaks every mandatory rule at once, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holdfast.scheduling.labels import POOL, TRAINING
from tests.support.stack_resources import resource

if TYPE_CHECKING:
    from holdfast.policies.resources import StackResource, Value


def _node_pool(name: str, kind: str, machine: str) -> StackResource:
    """A pool of GPU machines on AWS, without taints, that Karpenter consolidates."""
    required: list[Value] = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [kind]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [machine]},
    ]
    node_class: Value = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template: Value = {
        "metadata": {"labels": {POOL: name}},
        "spec": {"requirements": required, "nodeClassRef": node_class},
    }
    props: dict[str, Value] = {"metadata": {"name": name}, "spec": {"template": template}}
    return resource(
        "kubernetes:karpenter.sh/v1:NodePool", name, _object("karpenter.sh/v1", "NodePool", props)
    )


def _object(version: str, kind: str, props: dict[str, Value]) -> dict[str, Value]:
    return {"apiVersion": version, "kind": kind, **props}


def _training(name: str, spec: Value) -> list[StackResource]:
    """A training namespace with its ladder."""
    labelled: Value = {"name": name, "labels": {TRAINING: "true"}}
    placed: Value = {"name": "ladder", "namespace": name}
    policy = _object("holdfast.dev/v1alpha1", "FallbackPolicy", {"metadata": placed, "spec": spec})
    return [
        resource("kubernetes:core/v1:Namespace", name, _object("v1", "Namespace", {"metadata": labelled})),
        resource("kubernetes:holdfast.dev/v1alpha1:FallbackPolicy", f"{name}-ladder", policy),
    ]


def _around() -> list[StackResource]:
    """What lies around training: clusters, checkpoints, identities, a chart, a class."""
    everything = {"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::b/*"}]}
    both: list[Value] = [{"machineFamily": "n2", "spot": True}, {"machineFamily": "n2", "spot": False}]
    auto: Value = {"mode": "Auto", "defaultNodePools": "None"}
    closed: Value = {"enablePrivateCluster": True}
    compute = _object(
        "cloud.google.com/v1",
        "ComputeClass",
        {"metadata": {"name": "any"}, "spec": {"priorities": both}},
    )
    aks: dict[str, Value] = {"nodeProvisioningProfile": auto, "apiServerAccessProfile": closed}
    system: dict[str, Value] = {"mode": "System", "enableAutoScaling": True}
    return [
        resource("kubernetes:cloud.google.com/v1:ComputeClass", "any", compute),
        resource(
            "kubernetes:helm.sh/v3:Release",
            "karpenter",
            {"chart": "karpenter", "version": "^1.0", "values": {}},
        ),
        resource("aws:s3/bucket:Bucket", "checkpoints", {"forceDestroy": True}),
        resource("aws:iam/rolePolicy:RolePolicy", "jobs", {"policy": json.dumps(everything)}),
        resource("aws:eks/cluster:Cluster", "eks", {"vpcConfig": {"endpointPublicAccess": True}}),
        resource("azure-native:containerservice:ManagedCluster", "aks", aks),
        resource("azure-native:containerservice:AgentPool", "system", system),
    ]


def violations() -> list[StackResource]:
    """The program's resources."""
    spot: Value = {"pool": "a100-spot", "maxFailures": 5, "procurementTimeout": "15m"}
    huge: Value = {"name": "huge", "pods": 1, "cpu": "4000", "memory": "1Gi", "gpus": 1}
    return [
        _node_pool("a100-spot", "spot", "p4d.24xlarge"),
        _node_pool("a10g", "on-demand", "g5.12xlarge"),
        *_training("lost", {"tiers": [spot]}),
        *_training("wide", {"tiers": [spot, {"pool": "a10g"}], "shapes": [huge]}),
        *_around(),
    ]
