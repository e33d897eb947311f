"""A small program: a GKE cluster with a system pool, pools of the caller's, and one object inside it."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes

CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"
ZONES = ("europe-west4-a", "europe-west4-b")
SPOT_TAINT = {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}


def a_pool(
    name: str, *, machine: str = "e2-standard-4", spot: bool = False, **overrides: Any
) -> dict[str, Any]:
    """The arguments of a node pool that is autoscaled from nothing to four."""
    config: dict[str, Any] = {
        "machine_type": machine,
        "labels": {"holdfast.dev/pool": name},
        "service_account": "nodes@elsewhere.iam.gserviceaccount.com",
        **({"spot": True, "taints": [SPOT_TAINT]} if spot else {}),
        **overrides.pop("node_config", {}),
    }
    scaling = {
        "total_min_node_count": 0,
        "total_max_node_count": 4,
        "location_policy": "ANY" if spot else "BALANCED",
        **overrides.pop("autoscaling", {}),
    }
    return {"name": name, "node_config": config, "autoscaling": scaling, **overrides}


def gke(
    pools: Sequence[dict[str, Any]] = (), *, name: str = "holdfast-test", system: int = 1
) -> Callable[[], None]:
    """A program with a cluster of this name, `system` nodes in each zone, and pools."""

    def program() -> None:
        cluster = gcp.container.Cluster(
            "cluster",
            name=name,
            location="europe-west4",
            node_locations=list(ZONES),
            initial_node_count=1,
            remove_default_node_pool=True,
            deletion_protection=False,
        )
        first = gcp.container.NodePool(
            "system",
            name="system",
            cluster=cluster.name,
            location="europe-west4",
            node_locations=list(ZONES),
            node_count=system,
            node_config={"machine_type": "e2-standard-2", "labels": {"holdfast.dev/system": "true"}},
        )
        for pool in pools:
            arguments: dict[str, Any] = {"node_locations": list(ZONES), **pool}
            gcp.container.NodePool(
                str(pool["name"]),
                cluster=cluster.name,
                location="europe-west4",
                **arguments,
                opts=pulumi.ResourceOptions(depends_on=[first]),
            )
        inside = kubernetes.Provider("inside", kubeconfig=_kubeconfig(cluster))
        kubernetes.core.v1.ConfigMap(
            "conf",
            metadata={"name": f"conf-{name}", "namespace": "default"},
            data={"k": "1"},
            opts=pulumi.ResourceOptions(provider=inside, depends_on=[first]),
        )

    return program


def _kubeconfig(cluster: gcp.container.Cluster) -> pulumi.Output[str]:
    authority = cluster.master_auth.apply(lambda found: str(found.cluster_ca_certificate))
    return pulumi.Output.all(cluster.endpoint, authority).apply(
        lambda known: json.dumps(_document(str(known[0]), str(known[1])))
    )


def _document(host: str, authority: str) -> dict[str, object]:
    token = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "gke-gcloud-auth-plugin"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "it", "cluster": {"server": f"https://{host}", "certificate-authority-data": authority}}
        ],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "current-context": "it",
        "users": [{"name": "me", "user": {"exec": token}}],
    }
