"""NetworkPolicies: what reaches the pods of training namespaces and of operators, and what training pods reach.

A cluster's network plugin enforces them. The policies of a namespace add up, and none takes anything back, so a user
with the right to write NetworkPolicies in a training namespace can open it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.ladder.operators import OPERATORS

if TYPE_CHECKING:
    from pulumi import ResourceOptions

    from pulumi_holdfast.ladder.json import Json, JsonValue

API_VERSION: Final = "networking.k8s.io/v1"
KIND: Final = "NetworkPolicy"

#: The name of the NetworkPolicy in each namespace.
NAME: Final = "holdfast"

_CALLERS: Final = tuple(each.namespace for each in OPERATORS.values() if each.calls_jobs)

#: Where jobs have nothing to look for: metadata services, and Azure's address for the agents of a machine.
_NEVER: Final = (IPv4Network("169.254.0.0/16"), IPv4Network("168.63.129.16/32"))

#: The addresses of DNS caches on nodes: NodeLocal DNSCache, and AKS's LocalDNS.
_DNS_ON_NODES: Final = ("169.254.20.10/32", "169.254.10.11/32")
_DNS_PODS: Final = ("kube-dns", "node-local-dns")
_DNS_PORT: Final = 53
_HTTPS_PORT: Final = 443


@dataclass(frozen=True, kw_only=True)
class NodeEndpoint:
    """Where every node answers its pods: with the credentials of their identity, or as DNS."""

    address: str
    port: int
    protocol: str = "TCP"


#: The agent of EKS Pod Identity.
EKS_ENDPOINTS: Final = (NodeEndpoint(address="169.254.170.23", port=80),)

#: GKE's metadata server, which answers in place of Compute Engine's: Dataplane V2 sees the first address, other plugins the second.
#: With Cloud DNS for GKE it is the DNS server, too.
GKE_ENDPOINTS: Final = (
    NodeEndpoint(address="169.254.169.254", port=80),
    NodeEndpoint(address="169.254.169.252", port=988),
    NodeEndpoint(address="169.254.169.254", port=_DNS_PORT, protocol="UDP"),
    NodeEndpoint(address="169.254.169.254", port=_DNS_PORT),
)


@dataclass(frozen=True, kw_only=True)
class TrainingNetwork:
    """The network of a training namespace.

    `endpoints` are those of the nodes that its pods reach. `allow_from` are further namespaces or blocks of addresses that
    reach its pods, `allow_to` those that its pods reach, each on all ports.
    """

    endpoints: Sequence[NodeEndpoint] = ()
    allow_from: Sequence[str] = ()
    allow_to: Sequence[str] = ()


def training_spec(network: TrainingNetwork) -> Json:
    """Return the policy of a training namespace: its own pods, DNS, endpoints of nodes, HTTPS, and what the namespace adds.

    HTTPS is for checkpoints, data sets and the API server of the autoscaler of Ray: their addresses are not known before, and those
    of private endpoints are among the nodes'. KubeRay reaches all ports, since authors choose those of the Ray head.
    """
    own: Json = {"podSelector": {}}
    ingress: list[JsonValue] = [{"from": [own, _namespaces(*_CALLERS)]}]
    egress: list[JsonValue] = [
        {"to": [own]},
        {
            "to": [
                {
                    **_namespaces("kube-system"),
                    "podSelector": {"matchExpressions": [_in("k8s-app", _DNS_PODS)]},
                },
                *({"ipBlock": {"cidr": each}} for each in _DNS_ON_NODES),
            ],
            "ports": [_port(_DNS_PORT, "UDP"), _port(_DNS_PORT)],
        },
        *(
            {"to": [{"ipBlock": {"cidr": f"{each.address}/32"}}], "ports": [_port(each.port, each.protocol)]}
            for each in network.endpoints
        ),
        {"to": [_peer("0.0.0.0/0")], "ports": [_port(_HTTPS_PORT)]},
    ]
    if network.allow_from:
        ingress.append({"from": [_peer(each) for each in network.allow_from]})
    if network.allow_to:
        egress.append({"to": [_peer(each) for each in network.allow_to]})
    return {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": ingress, "egress": egress}


def system_spec(allow_from: Sequence[str], webhook_port: int | None = None) -> Json:
    """Return the policy of a namespace of operators: these namespaces and blocks of addresses reach its pods, and the API server `webhook_port`.

    Anyone reaches that port: requests of the API server come from addresses of the control plane, of nodes or of tunnels, as the cloud
    has it, and a webhook that it cannot reach refuses every job. Operators reach everything: the API server, clouds and webhooks
    have addresses that are not known before.
    """
    blocks = [each for each in allow_from if "/" in each]
    names = [each for each in allow_from if each not in blocks]
    peers = [*([_namespaces(*names)] if names else []), *map(_peer, blocks)]
    ingress: list[JsonValue] = [{"from": [*peers]}] if peers else []
    if webhook_port is not None:
        ingress.append({"ports": [_port(webhook_port)]})
    return {"podSelector": {}, "policyTypes": ["Ingress"], **({"ingress": ingress} if ingress else {})}


def isolated_spec() -> Json:
    """Return the policy of a namespace whose pods send and receive nothing."""
    return {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def network_policy(name: str, namespace: str, spec: Json, opts: ResourceOptions) -> KubernetesObject:
    """Create the NetworkPolicy of a namespace."""
    metadata: Json = {"name": NAME, "namespace": namespace}
    return KubernetesObject(name, API_VERSION, KIND, {"metadata": metadata, "spec": spec}, opts=opts)


def _peer(allowed: str) -> Json:
    if "/" not in allowed:
        return _namespaces(allowed)
    block = IPv4Network(allowed)
    hidden = [str(each) for each in _NEVER if each.subnet_of(block) and each != block]
    return {"ipBlock": {"cidr": allowed, **({"except": hidden} if hidden else {})}}


def _namespaces(*names: str) -> Json:
    return {"namespaceSelector": {"matchExpressions": [_in("kubernetes.io/metadata.name", names)]}}


def _in(key: str, values: Sequence[str]) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def _port(number: int, protocol: str = "TCP") -> Json:
    return {"protocol": protocol, "port": number}
