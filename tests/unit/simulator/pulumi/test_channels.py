"""Connections of a program to the engine that runs it."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest
from pulumi.runtime.proto import resource_pb2, resource_pb2_grpc
from pulumi.runtime.settings import Settings, get_monitor

from holdfast.simulator.pulumi.process import connect_anew

pytestmark = pytest.mark.timeout(60)


class _Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """An engine's monitor that has every feature."""

    def SupportsFeature(  # noqa: N802 - the protocol's name
        self, request: resource_pb2.SupportsFeatureRequest, context: grpc.ServicerContext
    ) -> resource_pb2.SupportsFeatureResponse:
        return resource_pb2.SupportsFeatureResponse(hasSupport=True)


@contextmanager
def _engine(port: int = 0) -> Generator[int]:
    server = grpc.server(ThreadPoolExecutor(max_workers=1))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(_Monitor(), server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield bound
    finally:
        server.stop(grace=None).wait()


def _run_at(port: int) -> resource_pb2_grpc.ResourceMonitorStub:
    Settings(project="holdfast", stack="dev", monitor=f"127.0.0.1:{port}")
    monitor = get_monitor()
    assert isinstance(monitor, resource_pb2_grpc.ResourceMonitorStub), "the SDK connects as a run begins"
    return monitor


def _is_answered(run: resource_pb2_grpc.ResourceMonitorStub) -> bool:
    try:
        # The SDK's stubs say nothing of what their calls return.
        run.SupportsFeature(resource_pb2.SupportsFeatureRequest(id="secrets"), timeout=10)  # pyright: ignore[reportUnknownMemberType]
    except grpc.RpcError:
        return False
    return True


def test_an_engine_at_the_port_of_one_that_was_killed_is_reached() -> None:
    connect_anew()
    with _engine() as port:
        of_the_killed = _run_at(port)
        assert _is_answered(of_the_killed), "an engine that runs answers"
    assert not _is_answered(of_the_killed), "it is gone"
    with _engine(port):
        assert _is_answered(_run_at(port)), "a new engine is asked, though the old one's connection backs off"
