"""What every cluster offers, whichever cloud it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pulumi import Output
    from pulumi_kubernetes import Provider


class Cluster(Protocol):
    """A Kubernetes cluster that other components build on.

    `kubernetes` is how its API server is reached, `workload_identity_issuer` the OpenID Connect issuer of its service
    accounts' tokens, as a URL.
    """

    cluster_name: str
    kubernetes: Provider
    workload_identity_issuer: Output[str]
