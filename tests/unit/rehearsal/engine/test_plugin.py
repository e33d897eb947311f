"""What a provider raises reaches the engine as one message, and a crash as silence."""

from typing import Any, cast

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, status_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from pulumi_holdfast.rehearsal.engine.faults import EngineCrashedError
from pulumi_holdfast.rehearsal.engine.plugin import InitFailedError, serve
from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.support.clusters.provider_calls import calling


class _Raising(ResourceProviderServicer):
    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def GetPluginInfo(  # noqa: N802 - named by the protocol
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> plugin_pb2.PluginInfo:
        raise self._failure


def _answer_to(failure: Exception) -> grpc.RpcError:
    with (
        serve(_Raising(failure)) as served,
        calling(served.port) as provider,
        pytest.raises(grpc.RpcError) as caught,
    ):
        provider.GetPluginInfo(empty_pb2.Empty())
    return caught.value


def _call(error: grpc.RpcError) -> grpc.Call:
    assert isinstance(error, grpc.Call)
    return error


def test_an_error_arrives_as_one_line() -> None:
    error = _answer_to(RehearsalError("BucketAlreadyExists: ckpt"))
    assert str(_call(error).details()) == "BucketAlreadyExists: ckpt"
    error = _answer_to(KeyError("vpcId"))
    assert _call(error).code() is grpc.StatusCode.INTERNAL, "a mistake must not look like the cloud's refusal"
    assert "GetPluginInfo: KeyError: 'vpcId' at " in str(_call(error).details())
    assert "\n" not in str(_call(error).details())


def test_a_missing_method_is_unimplemented() -> None:
    with (
        serve(ResourceProviderServicer()) as served,
        calling(served.port) as provider,
        pytest.raises(grpc.RpcError) as caught,
    ):
        provider.Parameterize(provider_pb2.ParameterizeRequest())
    assert _call(caught.value).code() is grpc.StatusCode.UNIMPLEMENTED


def test_an_initialization_failure_arrives_with_the_state() -> None:
    error = _answer_to(
        InitFailedError(
            resource_id="training/ladder", properties={"spec": {"tiers": 2}}, inputs={}, reasons=["timed out"]
        )
    )
    metadata = cast("dict[str, bytes]", dict(cast("Any", _call(error).trailing_metadata())))
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
    detail = provider_pb2.ErrorResourceInitFailed.FromString(status.details[0].value)
    assert (detail.id, list(detail.reasons)) == ("training/ladder", ["timed out"])


def test_a_call_of_a_killed_engine_is_not_answered_and_the_server_stops() -> None:
    served = serve(_Raising(EngineCrashedError()))
    with calling(served.port) as provider:
        call = provider.GetPluginInfo.future(empty_pb2.Empty())
        with pytest.raises(grpc.FutureTimeoutError):
            call.result(timeout=0.2)
    served.close()
    served.close()
    assert call.done()
