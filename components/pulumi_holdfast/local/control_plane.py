"""The local cluster: an existing API server, and simulated nodes for its operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_kubernetes import Provider

from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.ladder.labels import ARCH, CAPACITY_TYPE, ON_DEMAND, OS, SYSTEM, SYSTEM_VALUE, ZONE
from pulumi_holdfast.ladder.machines import LOCAL_ZONES
from pulumi_holdfast.ladder.taints import SYSTEM as SYSTEM_TAINT

#: The default of kube-apiserver; managed clouds replace it by a public URL.
_ISSUER: Final = "https://kubernetes.default.svc.cluster.local"

_NODE_METADATA: Final = {
    # kwok simulates the kubelet of the nodes with this annotation.
    "kwok.x-k8s.io/node": "fake",
    # Taints are one atomic list, into which the node controller writes while a node starts: without force a
    # later change would end in a field conflict.
    "pulumi.com/patchForce": "true",
}


@dataclass(frozen=True, kw_only=True)
class LocalClusterArgs:
    """`kubeconfig` is an absolute path; `system_nodes` is the number of nodes for operators, 1 or more."""

    kubeconfig: str
    system_nodes: int = 1


class LocalCluster(ComponentResource):
    """A cluster on the local machine (`holdfast:index:LocalCluster`).

    Creates the Kubernetes provider and the system nodes `system-0`, `system-1`, …: on-demand, spread over the
    zones, tainted so that only operators run there. The node simulator sets their capacity.
    """

    cluster_name: str
    kubernetes: Provider
    workload_identity_issuer: Output[str]

    def __init__(self, name: str, args: LocalClusterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:LocalCluster", name, None, opts)
        self.cluster_name = name
        self.kubernetes = Provider(
            f"{name}-kubernetes", kubeconfig=args.kubeconfig, opts=ResourceOptions(parent=self)
        )
        for index in range(args.system_nodes):
            KubernetesObject(
                f"{name}-system-{index}",
                "v1",
                "Node",
                {
                    "metadata": {
                        "name": f"system-{index}",
                        "annotations": _NODE_METADATA,
                        "labels": {
                            "kubernetes.io/hostname": f"system-{index}",
                            ARCH: "amd64",
                            OS: "linux",
                            CAPACITY_TYPE: ON_DEMAND,
                            SYSTEM: SYSTEM_VALUE,
                            ZONE: LOCAL_ZONES[index % len(LOCAL_ZONES)],
                        },
                    },
                    "spec": {
                        "taints": [
                            {
                                "key": SYSTEM_TAINT.key,
                                "value": SYSTEM_TAINT.value,
                                "effect": SYSTEM_TAINT.effect,
                            }
                        ]
                    },
                },
                opts=ResourceOptions(parent=self, provider=self.kubernetes),
            )
        self.workload_identity_issuer = Output.from_input(_ISSUER)
        self.register_outputs({"workload_identity_issuer": self.workload_identity_issuer})
