"""Addresses of pods and Services, which the network does not know. Pure."""

from ipaddress import IPv4Network
from typing import Final

#: Room for 1024 nodes, of which each has a /24: AKS's own default holds 256, surplus ones of an upgrade included.
PODS_CIDR: Final = "10.244.0.0/14"
SERVICES_CIDR: Final = "172.20.0.0/16"

#: The address of Kubernetes' DNS among the Services', counted from the first. The one after the first is the API server's.
_DNS: Final = 10


def dns_service_ip(services_cidr: str) -> str:
    """The address of the cluster's DNS. AKS knows one for its own default range alone."""
    return str(IPv4Network(services_cidr)[_DNS])
