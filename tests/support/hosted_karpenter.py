"""AWS's Karpenter, installed from its charts into a control plane whose host runs it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping
from tests.support.hosted_charts import OWN_CHARTS, HostedCharts, hosted_charts
from tests.support.pod_waits import wait_for_pod

NAMESPACE = "karpenter"
NODE_CLASS = "karpenter.k8s.aws/v1"
STOCK = "rehearsal.holdfast.dev/stock"

#: The chart's own defaults but for what has none: two replicas that elect a leader, on two nodes in two zones.
VALUES: Json = {
    "settings": {"clusterName": "holdfast-test"},
    "controller": {
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}}
    },
}


@dataclass(frozen=True, kw_only=True)
class HostedKarpenter:
    """A control plane with Karpenter in it."""

    client: KubeClient
    charts: HostedCharts

    def apply(self, *objects: Json) -> None:
        self.charts.apply(*objects)

    def machines(self, pool: str) -> list[Json]:
        """The NodeClaims of a pool."""
        return self.client.list(
            "karpenter.sh/v1", "NodeClaim", label_selector=f"karpenter.sh/nodepool={pool}"
        )

    def wait_for_machines(self, pool: str, condition: Callable[[list[Json]], bool], what: str) -> list[Json]:
        return self.client.wait_list(
            "karpenter.sh/v1",
            "NodeClaim",
            label_selector=f"karpenter.sh/nodepool={pool}",
            timeout_seconds=60,
            condition=condition,
            what=what,
        )

    def wait_for_class(
        self, name: str, condition: "Callable[[Json | None], bool]", what: str
    ) -> "Json | None":
        return self.client.wait_for(
            NODE_CLASS, "EC2NodeClass", name, timeout_seconds=60, condition=condition, what=what
        )

    def wait_for_pod(self, name: str, condition: Callable[[Json], bool], what: str) -> Json:
        return wait_for_pod(self.client, name, condition, what)

    def wait_for_event(self, reason: str, about: str) -> Json:
        """An event with this reason about an object whose name starts so."""

        def seen(events: list[Json]) -> list[Json]:
            return [
                event
                for event in events
                if event.get("reason") == reason
                and str(mapping(event.get("involvedObject")).get("name")).startswith(about)
            ]

        return seen(
            self.client.wait_list(
                "v1", "Event", timeout_seconds=60, condition=lambda events: bool(seen(events)), what=reason
            )
        )[0]


@contextmanager
def hosted_karpenter(folder: Path) -> Generator[HostedKarpenter]:
    """Karpenter for AWS, ready, for the length of the block."""
    with hosted_charts(folder) as charts:
        charts.install("karpenter-crds", OWN_CHARTS / "karpenter-crds", NAMESPACE)
        charts.install("karpenter", charts.workspace.charts_dir / "karpenter", NAMESPACE, VALUES)
        yield HostedKarpenter(client=charts.client, charts=charts)


def node_class(name: str, *, image: str = "al2023@v20260801") -> Json:
    """An EC2NodeClass that AWS's CRD accepts."""
    return {
        "apiVersion": NODE_CLASS,
        "kind": "EC2NodeClass",
        "metadata": {"name": name},
        "spec": {
            "role": "holdfast-test-node",
            "amiSelectorTerms": [{"alias": image}],
            "subnetSelectorTerms": [{"id": "subnet-0123456789abcdef0"}],
            "securityGroupSelectorTerms": [{"id": "sg-0123456789abcdef0"}],
        },
    }


def node_pool(name: str, *types: str, capacity: str = "spot", weight: int = 1) -> Json:
    """A NodePool over the node class of its name; Karpenter takes no machine from it by itself."""
    requirements: list[JsonValue] = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "weight": weight,
            "disruption": {
                "consolidateAfter": "Never",
                "consolidationPolicy": "WhenEmpty",
                "budgets": [{"nodes": "0"}],
            },
            "template": {
                "metadata": {"labels": {"team": name}},
                "spec": {"nodeClassRef": reference, "expireAfter": "Never", "requirements": requirements},
            },
        },
    }


def job_pod(name: str, selector: Json) -> Json:
    """A pod that needs a node of its own kind."""
    container: Json = {"name": "train", "image": "train", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeSelector": selector,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }
