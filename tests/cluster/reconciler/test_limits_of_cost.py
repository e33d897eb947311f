"""The controller process keeps limits of cost on a real API server, with prices as Karpenter shows them."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final, cast

import pytest
import yaml

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, INSTANCE_TYPE, MAX_COST, POOL
from tests.support.background import Silent, served
from tests.support.clusters.reconciler import NAMESPACE, LoopCluster, jobset, policy, replica, wait_until
from tests.support.json_objects import obj, objects

pytestmark = pytest.mark.cluster

ROOT: Final = Path(__file__).parents[3]
#: Written by the metrics controller of karpenter-provider-aws 1.14.1: p4d.24xlarge costs 2.195764 on spot.
METRICS: Final = ROOT / "tests/fixtures/karpenter-1.14-offerings/metrics.txt"
DEFINITION: Final = (
    ROOT
    / "components/pulumi_holdfast/kubernetes/charts/karpenter-kwok-crds/files/karpenter.sh_nodepools.yaml"
)
KARPENTER: Final = "karpenter.sh/v1"


def priced(pool: str, capacity: str, **fields: float) -> Json:
    return {"pool": pool, "facts": {"capacity": capacity}, **fields}


def messages(cluster: LoopCluster, reason: str) -> list[str]:
    events = cluster.client.list("v1", "Event", namespace=NAMESPACE)
    return [str(each.get("message")) for each in events if each["reason"] == reason]


def test_a_job_leaves_on_demand_when_its_max_cost_is_spent(cluster: LoopCluster, tmp_path: Path) -> None:
    cluster.apply(policy(priced("spot-a", "spot", price=1), priced("on-demand", "on-demand", price=36_000)))
    job = jobset("budget", pool="on-demand")
    job = {**job, "metadata": {**obj(job["metadata"]), "annotations": {MAX_COST: "30"}}}
    with replica(cluster.kubeconfig, tmp_path) as controller:
        controller.wait_ready()
        cluster.apply(job)
        cluster.wait_on("budget", "spot-a")
        wait_until(lambda: "MaxCostReached" in cluster.said("budget"), "its user reads why")
    uses = {str(use["pool"]): use for use in objects(obj(cluster.state("budget")["ledger"])["uses"])}
    assert float(str(uses["on-demand"]["cost"])) >= 30


@contextmanager
def karpenters_metrics() -> Generator[str]:
    """Serve the recorded metrics; yields their address."""

    class Handler(Silent, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(METRICS.read_bytes())

    with served(Handler) as address:
        yield f"{address}/metrics"


@contextmanager
def a_node_pool(cluster: LoopCluster) -> Generator[None]:
    """Karpenter's real definition of NodePool, and the NodePool of spot-a."""
    cluster.apply(cast("Json", yaml.safe_load(DEFINITION.read_text(encoding="utf-8"))))
    required = {CAPACITY_TYPE: "spot", INSTANCE_TYPE: "p4d.24xlarge"}
    spec: Json = {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "spot-a"},
        "requirements": [
            {"key": key, "operator": "In", "values": [value]} for key, value in required.items()
        ],
    }
    template: Json = {"metadata": {"labels": {POOL: "spot-a"}}, "spec": spec}
    pool: Json = {
        "apiVersion": KARPENTER,
        "kind": "NodePool",
        "metadata": {"name": "spot-a"},
        "spec": {"template": template},
    }

    def is_stored() -> bool:
        with suppress(ApiError):
            cluster.apply(pool)
            return True
        return False

    wait_until(is_stored, "the API server serves NodePools")
    try:
        yield
    finally:
        cluster.client.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "nodepools.karpenter.sh")


def test_a_job_buys_no_nodes_above_the_price_that_karpenter_shows(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    # Nine pods do not fit the eight places of spot-a, so the job would buy a node.
    cluster.apply(
        policy(priced("spot-a", "spot", maxPrice=2), priced("spot-b", "spot"), {"pool": "on-demand"})
    )
    with (
        a_node_pool(cluster),
        karpenters_metrics() as address,
        replica(cluster.kubeconfig, tmp_path, f"--karpenter-metrics={address}") as controller,
    ):
        controller.wait_ready()
        shown = 'holdfast_fallback_node_price{pool="spot-a"}'
        wait_until(lambda: controller.number(shown) == 2.195764, "the controller has Karpenter's price")
        cluster.apply(jobset("expensive", pods=9))
        wait_until(lambda: cluster.state("expensive").get("pool") == "spot-b", "the job leaves the tier")
        wait_until(lambda: bool(messages(cluster, "PriceAboveMax")), "and says why")
    assert (
        "A node of spot-a costs 2.19576 per hour, above maxPrice 2" in messages(cluster, "PriceAboveMax")[0]
    )
