"""What every cluster offers, whichever cloud it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pulumi import Output
    from pulumi_kubernetes import Provider


class CheckpointStore(Protocol):
    """A place for the checkpoints of every training namespace, each under a prefix of its own."""

    def uri(self, namespace: str) -> Output[str]:
        """The address under which a namespace keeps its checkpoints (`s3://…`, `gs://…`, `file:///…`)."""
        ...


class Cluster(Protocol):
    """A Kubernetes cluster that other components build on.

    `kubernetes` is how its API server is reached, `workload_identity_issuer` the OpenID Connect issuer of its service
    accounts' tokens, as a URL.
    """

    cluster_name: str
    kubernetes: Provider
    workload_identity_issuer: Output[str]
