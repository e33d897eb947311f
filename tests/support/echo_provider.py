"""A Kubernetes provider without a cluster: every object comes out as it was asked for."""

# ruff: noqa: N802 - the names of the methods are the protocol's

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi.runtime.proto import provider_pb2

from rehearsal.providers.plugin import Plugin

if TYPE_CHECKING:
    import grpc
    from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

    from rehearsal.engine.checkpoint import PendingOperation


class EchoProvider(Plugin):
    """Keeps nothing and refuses nothing; `created` lists the URNs that a run, not a preview, has made."""

    def __init__(self) -> None:
        super().__init__("4.34.2")
        self.created: list[str] = []

    def Check(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Take what the program gives."""
        return provider_pb2.CheckResponse(inputs=request.news)

    def Create(
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        """Give back what the program gave."""
        if request.preview:
            return provider_pb2.CreateResponse(properties=request.properties)
        self.created.append(request.urn)
        return provider_pb2.CreateResponse(id=request.urn, properties=request.properties)


class EchoStandIns:
    """Plays the providers of a stack by echoes."""

    def __init__(self) -> None:
        self.echo = EchoProvider()

    def provider(self, package: str) -> ResourceProviderServicer:
        """Return the one echo."""
        assert package == "kubernetes", "the stack has no other provider"
        return self.echo

    def made(self, operation: PendingOperation) -> str | None:
        """Return no object: no run here is interrupted."""
        return None
