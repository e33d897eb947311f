"""Two NodePools, a training namespace with its ladder, and a Job: the same program as in the other languages here."""

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.apiextensions import CustomResource

SPOT = {"key": "karpenter.sh/capacity-type", "value": "spot", "effect": "NoSchedule"}
pods = pulumi.Config().require_int("pods")


def node_pool(name: str, capacity: str, taints: list[dict[str, str]]) -> None:
    """A NodePool of at most 8 machines with 8 GPUs each."""
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p4d.24xlarge"]},
    ]
    template = {
        "metadata": {"labels": {"holdfast.dev/pool": name}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": requirements,
            "taints": taints,
            "expireAfter": "Never",
        },
    }
    CustomResource(
        name,
        api_version="karpenter.sh/v1",
        kind="NodePool",
        metadata={"name": name},
        spec={"template": template, "limits": {"cpu": 768}},
    )


node_pool("a100-spot", "spot", [SPOT])
node_pool("a100", "on-demand", [])
namespace = kubernetes.core.v1.Namespace(
    "vision", metadata={"name": "vision", "labels": {"holdfast.dev/training": "true"}}
)
kubernetes.core.v1.ResourceQuota(
    "vision-quota",
    metadata={"name": "quota", "namespace": namespace.metadata.name},
    spec={"hard": {"pods": pulumi.Output.secret("64")}},
)
CustomResource(
    "vision-ladder",
    api_version="holdfast.dev/v1alpha1",
    kind="FallbackPolicy",
    metadata={"name": "ladder", "namespace": namespace.metadata.name},
    spec={
        "tiers": [{"pool": "a100-spot", "maxFailures": 5, "procurementTimeout": "20m"}, {"pool": "a100"}],
        "shapes": [
            {
                "name": "pretraining",
                "pods": pods,
                "cpu": "90",
                "memory": "900Gi",
                "gpus": 8,
                "accelerator": "a100",
                "tolerations": [SPOT],
            }
        ],
    },
)
kubernetes.batch.v1.Job(
    "evaluation",
    metadata={"name": "evaluation", "namespace": namespace.metadata.name},
    spec={
        "parallelism": 2,
        "completions": 2,
        "template": {
            "spec": {
                "restart_policy": "Never",
                "node_selector": {"holdfast.dev/pool": "a100"},
                "containers": [
                    {
                        "name": "evaluation",
                        "image": "registry.example.com/evaluation:1.4.2",
                        "resources": {
                            "requests": {"cpu": "8", "memory": "64Gi"},
                            "limits": {"nvidia.com/gpu": "1"},
                        },
                    }
                ],
            }
        },
    },
)
