"""What NetworkPolicies let through, as Kubernetes documents it: one rule that matches is enough."""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Final

import pytest

from pulumi_holdfast.kubernetes.network import (
    EKS_ENDPOINTS,
    GKE_ENDPOINTS,
    NodeEndpoint,
    TrainingNetwork,
    isolated_spec,
    system_spec,
    training_spec,
)
from pulumi_holdfast.ladder.json import Json, sequence
from tests.support.clusters.admitted_examples import STACKS
from tests.support.json_objects import obj, objects

DNS: Final = {"k8s-app": "kube-dns"}
CLOUDS: Final[Mapping[str, Sequence[NodeEndpoint]]] = {
    "aws": EKS_ENDPOINTS,
    "gcp": GKE_ENDPOINTS,
    "azure": (),
}


def matches(selector: Json, labels: Mapping[str, str]) -> bool:
    return all(
        labels.get(str(each["key"])) in sequence(each["values"])
        for each in objects(selector.get("matchExpressions"))
    )


def peers(spec: Json, direction: str, port: int, protocol: str) -> Iterator[Json | None]:
    """What a policy lets through on a port; None for everyone."""
    side = {"ingress": "from", "egress": "to"}[direction]
    for rule in objects(spec.get(direction)):
        ports = objects(rule.get("ports"))
        if not ports or {"port": port, "protocol": protocol} in ports:
            yield from objects(rule[side]) if side in rule else (None,)


def reaches_address(spec: Json, address: str, port: int, protocol: str = "TCP") -> bool:
    for peer in peers(spec, "egress", port, protocol):
        block = obj((peer or {}).get("ipBlock"))
        blocks = [str(block["cidr"])] if block else []
        hidden = [str(each) for each in sequence(block.get("except"))]
        if any(_within(address, each) for each in blocks) and not any(
            _within(address, each) for each in hidden
        ):
            return True
    return False


def _within(address: str, block: str) -> bool:
    return ip_address(address) in ip_network(block)


def lets_pods(
    spec: Json, direction: str, namespace: str, port: int = 80, labels: Mapping[str, str] | None = None
) -> bool:
    """Whether a policy of the namespace `vision` lets through pods of a namespace."""
    for peer in peers(spec, direction, port, "TCP"):
        if peer is None:
            return True
        if "ipBlock" in peer:
            continue
        named = {"kubernetes.io/metadata.name": namespace}
        there = (
            matches(obj(peer["namespaceSelector"]), named)
            if "namespaceSelector" in peer
            else namespace == "vision"
        )
        if there and matches(obj(peer.get("podSelector")), labels or {}):
            return True
    return False


def test_a_training_namespace_is_closed_to_other_namespaces_both_ways() -> None:
    spec = training_spec(TrainingNetwork())
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["podSelector"] == {}
    for direction in ("ingress", "egress"):
        assert lets_pods(spec, direction, "vision", 29500)
        for other in ("tabular", "holdfast-system", "jobset-system", "karpenter", "default", "kube-system"):
            assert not lets_pods(spec, direction, other, 8265)
            assert not lets_pods(spec, direction, other, 443), "addresses of pods match no block in Cilium"


def test_kuberay_reaches_the_head_and_the_head_does_not_reach_kuberay() -> None:
    spec = training_spec(TrainingNetwork())
    assert lets_pods(spec, "ingress", "kuberay-system", 8265)
    assert not lets_pods(spec, "egress", "kuberay-system", 8080)


def test_pods_reach_the_dns_of_the_cluster_and_nothing_else_of_its_system() -> None:
    spec = training_spec(TrainingNetwork())
    assert lets_pods(spec, "egress", "kube-system", 53, DNS)
    assert not lets_pods(spec, "egress", "kube-system", 9153, DNS)
    assert not lets_pods(spec, "egress", "kube-system", 53, {"k8s-app": "metrics-server"})
    assert not lets_pods(spec, "egress", "vision-dns", 53, DNS)
    assert reaches_address(spec, "169.254.20.10", 53, "UDP")


@pytest.mark.parametrize(
    ("cloud", "address", "port"),
    [("aws", "169.254.170.23", 80), ("gcp", "169.254.169.254", 80), ("gcp", "169.254.169.252", 988)],
)
def test_pods_reach_what_gives_them_the_credentials_of_their_cloud_alone(
    cloud: str, address: str, port: int
) -> None:
    reached = {
        each
        for each, endpoints in CLOUDS.items()
        if reaches_address(training_spec(TrainingNetwork(endpoints=endpoints)), address, port)
    }
    assert reached == {cloud}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_pods_reach_object_stores_by_https_alone(cloud: str) -> None:
    spec = training_spec(TrainingNetwork(endpoints=CLOUDS[cloud]))
    for address in ("52.216.1.1", "10.40.3.4"):
        assert reaches_address(spec, address, 443)
        assert not reaches_address(spec, address, 22)


@pytest.mark.parametrize("allowed", [(), ("0.0.0.0/0",), ("168.0.0.0/6",)])
@pytest.mark.parametrize("address", ["169.254.169.254", "168.63.129.16"])
@pytest.mark.parametrize("port", [53, 80, 443, 32526])
def test_pods_on_azure_reach_no_metadata_also_with_wide_blocks(
    allowed: tuple[str, ...], address: str, port: int
) -> None:
    assert not reaches_address(training_spec(TrainingNetwork(allow_to=allowed)), address, port)


def test_a_namespace_opens_more_to_namespaces_and_addresses() -> None:
    spec = training_spec(TrainingNetwork(allow_from=["monitoring"], allow_to=["mlflow", "10.20.0.0/16"]))
    assert lets_pods(spec, "ingress", "monitoring")
    assert not lets_pods(spec, "egress", "monitoring")
    assert lets_pods(spec, "egress", "mlflow", 5000)
    assert reaches_address(spec, "10.20.1.1", 5432)
    assert not reaches_address(spec, "10.21.1.1", 5432)


def test_only_scrapers_reach_operators_and_everyone_their_webhook() -> None:
    spec = system_spec(["monitoring"], webhook_port=9443)
    assert lets_pods(spec, "ingress", "monitoring", 8443)
    assert not lets_pods(spec, "ingress", "tabular", 8443)
    assert lets_pods(spec, "ingress", "kube-system", 9443), "tunnels of the API server run there"
    assert spec["policyTypes"] == ["Ingress"]


def test_without_scrapers_nothing_reaches_an_operator() -> None:
    assert not objects(system_spec([]).get("ingress")), "an empty list of peers would let everything through"


def test_placeholder_pods_send_and_receive_nothing() -> None:
    assert isolated_spec() == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@pytest.mark.parametrize("cloud", STACKS)
def test_every_stack_closes_its_training_namespaces_and_those_of_operators(cloud: str) -> None:
    specs = {
        str(obj(each.inputs["metadata"])["namespace"]): obj(each.inputs["spec"])
        for each in STACKS[cloud]().of(":NetworkPolicy")
    }
    # GKE's and AKS's own autoscalers are not among the pods of the cluster.
    own = {"karpenter"} if cloud in {"local", "aws"} else set[str]()
    assert specs.keys() == {
        "holdfast-system", "holdfast-reservations", "jobset-system", "kuberay-system", "tabular", "vision", *own
    }  # fmt: skip
    for training in ("tabular", "vision"):
        assert specs[training] == training_spec(TrainingNetwork(endpoints=CLOUDS.get(cloud, ())))
    for system in specs.keys() - {"tabular", "vision"}:
        assert not lets_pods(specs[system], "ingress", "tabular", 8080)
        assert lets_pods(specs[system], "ingress", "monitoring", 8080) == (system != "holdfast-reservations")
        assert lets_pods(specs[system], "ingress", "tabular", 9443) == (system == "jobset-system")
    assert all(lets_pods(specs[each], "ingress", "holdfast-system", 8080) for each in own), "it reads prices"
