"""Three NodePools of Karpenter and a training namespace, as any program may have them.

Its jobs cannot fall back: `pulumi preview --policy-pack` reports why.
"""

from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import Namespace, ResourceQuota


def node_pool(name: str, capacity: str, types: list[str], cpu: str) -> None:
    """A NodePool whose nodes jobs select by name; spot nodes have no taint."""
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types},
    ]
    CustomResource(
        name,
        api_version="karpenter.sh/v1",
        kind="NodePool",
        metadata={"name": name},
        spec={
            "template": {
                "metadata": {"labels": {"holdfast.dev/pool": name}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "requirements": requirements,
                    "expireAfter": "Never",
                },
            },
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "budgets": [{"nodes": "0", "reasons": ["Drifted"]}],
            },
            "limits": {"cpu": cpu},
        },
    )


def program() -> None:
    """A ladder from spot to on-demand for gangs of 16 pods; the on-demand pool has capacity for 8 of them."""
    node_pool("cpu", "on-demand", ["m7i.2xlarge", "m6i.2xlarge"], "160")
    node_pool("a100-spot", "spot", ["p4d.24xlarge", "p4de.24xlarge"], "1536")
    node_pool("a100", "on-demand", ["p4d.24xlarge"], "768")
    Namespace("vision", metadata={"name": "vision", "labels": {"holdfast.dev/training": "true"}})
    ResourceQuota(
        "vision",
        metadata={"name": "quota", "namespace": "vision"},
        spec={"hard": {"requests.nvidia.com/gpu": "128"}},
    )
    CustomResource(
        "vision-ladder",
        api_version="holdfast.dev/v1alpha1",
        kind="FallbackPolicy",
        metadata={"name": "ladder", "namespace": "vision"},
        spec={
            "tiers": [{"pool": "a100-spot", "maxFailures": 5, "procurementTimeout": "20m"}, {"pool": "a100"}],
            "returnAfter": "1h",
            "shapes": [
                {
                    "name": "pretraining",
                    "pods": 16,
                    "cpu": "90",
                    "memory": "900Gi",
                    "gpus": 8,
                    "accelerator": "a100",
                }
            ],
        },
    )


if __name__ == "__main__":
    program()
