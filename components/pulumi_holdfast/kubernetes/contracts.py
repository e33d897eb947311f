"""The interfaces of every cloud's cluster and checkpoint store for other components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pulumi import Output
    from pulumi_kubernetes import Provider


class CheckpointStore(Protocol):
    """A store with a separate prefix for the checkpoints of each training namespace."""

    def uri(self, namespace: str) -> Output[str]:
        """The address of a namespace's checkpoints (`s3://…`, `gs://…`, `file:///…`)."""
        ...


class Cluster(Protocol):
    """A Kubernetes cluster that other components use.

    `kubernetes` is the provider for its API server, `workload_identity_issuer` the URL of the OpenID Connect
    issuer of its service account tokens.
    """

    cluster_name: str
    kubernetes: Provider
    workload_identity_issuer: Output[str]
